"""Files of every kind: the detected format, the events, and the accounting of all bytes."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.errors import UsageError
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import deployment_of, list_inputs
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange, Event, FileProfile, RangeScan
from flink_triage.settings import DEFAULT_SETTINGS, Settings

_STOCK = "".join(
    f"2026-11-21 06:47:{n % 60:02},468 INFO  org.apache.flink.Foo [] - message {n}\n"
    for n in range(200)
)
_FAILURE = (
    "2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - it failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat org.apache.flink.Foo.bar(Foo.java:12)\n"
)
_TEXT = _STOCK + _FAILURE
_TRACE = "java.io.IOException: No space left on device\n\tat org.apache.flink.Foo.bar(Foo.java:12)"


def _read(path: Path, limits: Settings = DEFAULT_SETTINGS) -> tuple[FileProfile, RangeScan]:
    profile = probe(list_inputs([str(path)]).files[0], limits)
    scan = Scanner(["No space left"], limits).scan(ByteRange(profile, "d"))
    return profile, scan


def _summary(events: tuple[Event, ...]) -> list[tuple[str | None, str, str | None]]:
    return [(event.level, event.message, event.continuation) for event in events]


_EXPECTED = [("ERROR", "it failed", _TRACE)]
_CRI = "".join(f"2026-11-21T06:48:00.000000001Z stdout F {x}\n" for x in _TEXT.split("\n")[:-1])
_PREFIXED = "".join(f"[pod/flink-tm-1/main] {x}\n" for x in _TEXT.split("\n")[:-1])
_GREPPED = "".join(f"{n}:{x}\n" for n, x in enumerate(_TEXT.split("\n")[:-1], 1))
_INDENTED = "".join(f"    {x}\n" for x in _TEXT.split("\n")[:-1])
_SYSLOG = "".join(f"Oct 21 02:34:46 host flink[12]: {x}\n" for x in _TEXT.split("\n")[:-1])
_DOCKER = "".join(
    json.dumps({"log": f"{x}\n", "stream": "stdout", "time": "2026-11-21T06:48:00.1Z"}) + "\n"
    for x in _TEXT.split("\n")[:-1]
)


@pytest.mark.parametrize(
    ("data", "carrier"),
    [
        pytest.param(_TEXT.encode(), "none", id="plain"),
        pytest.param(_TEXT.replace("\n", "\r\n").encode(), "none", id="CRLF"),
        pytest.param(b"\xef\xbb\xbf" + _TEXT.encode(), "none", id="byte order mark"),
        pytest.param(_TEXT.encode("utf-16"), "none", id="UTF-16"),
        pytest.param(_TEXT.replace("ERROR", "\x1b[31mERROR\x1b[0m").encode(), "none", id="ANSI"),
        pytest.param(gzip.compress(_TEXT.encode()), "none", id="gzip"),
        pytest.param(
            gzip.compress(_STOCK.encode()) + gzip.compress(_FAILURE.encode()), "none",
            id="gzip of two members",
        ),
        pytest.param(bz2.compress(_TEXT.encode()), "none", id="bz2"),
        pytest.param(lzma.compress(_TEXT.encode()), "none", id="xz"),
        pytest.param(_CRI.encode(), "cri", id="CRI"),
        pytest.param(_PREFIXED.encode(), "kubectl-prefix", id="kubectl --prefix"),
        pytest.param(_GREPPED.encode(), "grep-line", id="grep -n"),
        pytest.param(_SYSLOG.encode(), "syslog", id="syslog"),
        pytest.param(_DOCKER.encode(), "docker-json", id="docker json-file"),
        pytest.param(_INDENTED.encode(), "indent-4", id="indented like code"),
    ],
)  # fmt: skip
def test_the_same_log_in_any_wrapping(tmp_path: Path, data: bytes, carrier: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(data)
    profile, scan = _read(path)
    assert profile.carrier == carrier
    assert _summary(scan.events) == _EXPECTED
    assert sum(volume.event_count for volume in scan.volumes) == 201
    assert sum(volume.byte_count for volume in scan.volumes) == (
        scan.event_bytes + scan.counted_bytes
    )
    assert scan.problems == ()


@pytest.mark.parametrize(("tag", "carrier"), [("app", "syslog"), ("kafka", "none")])
def test_syslog_prefixes_of_other_products_are_kept(tmp_path: Path, tag: str, carrier: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(_SYSLOG.replace(" flink[", f" {tag}["), encoding="utf-8")
    assert f" {tag}[" in path.read_text(encoding="utf-8")
    profile, _ = _read(path)
    assert profile.carrier == carrier


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(lambda data: data[:-9], "truncated", id="cut short"),
        pytest.param(
            lambda data: data[:-8] + b"\0\0\0\0" + data[-4:], "damaged", id="wrong checksum"
        ),
        pytest.param(lambda data: data + b"garbage", "followed by", id="trailing garbage"),
    ],
)
def test_damaged_gzip_is_read_up_to_the_damage(tmp_path, damage, reason) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "a.log.gz"
    path.write_bytes(damage(gzip.compress((_FAILURE + _STOCK).encode())))
    _, scan = _read(path)
    assert _summary(scan.events)[0] == _EXPECTED[0]
    assert [reason in problem.reason for problem in scan.problems] == [True]


def test_decompression_bomb_is_cut_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(gzip.compress(_STOCK.encode() * 50))
    _, scan = _read(path, Settings(max_file_bytes=10_000))
    assert scan.event_bytes + scan.counted_bytes == 10_000
    assert ["limit" in problem.reason for problem in scan.problems] == [True]


def test_binary_files_are_quarantined_with_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "core.log"
    path.write_bytes(b"\x7fELF" + bytes(1000))
    profile, scan = _read(path)
    assert profile.problem == "binary: binary program"
    assert (scan.quarantined_bytes, scan.events) == (1004, ())


def test_pasted_traces_become_events_without_time(tmp_path: Path) -> None:
    path = tmp_path / "ticket.txt"
    path.write_text(f"We see this:\n\n{_TRACE}\n\nWhat can we do about it?\n")
    _, scan = _read(path)
    head, _, rest = _TRACE.partition("\n")
    assert _summary(scan.events) == [(None, head, rest)]
    assert sum(volume.byte_count for volume in scan.volumes) == path.stat().st_size


def test_streams_that_share_a_file_keep_their_traces_apart(tmp_path: Path) -> None:
    path = tmp_path / "pods.log"
    lines = _FAILURE.split("\n")[:-1]
    text = "".join(f"[pod/a/main] {x}\n[pod/b/main] {x}\n" for x in lines)
    path.write_text(text)
    _, scan = _read(path)
    assert _summary(scan.events) == _EXPECTED * 2


def test_secrets_never_reach_an_event(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(_STOCK + _FAILURE.replace("it failed", "s3.secret-key: AbCdEf123456"))
    _, scan = _read(path)
    assert "AbCdEf123456" not in repr(scan.events)
    assert scan.redactions == 1


def test_process_version_and_host_come_from_banner_and_name(tmp_path: Path) -> None:
    path = tmp_path / "flink-flink-taskexecutor-0-node7.log"
    banner = (
        "2026-11-21 06:47:23,000 INFO  org.apache.flink.runtime.entrypoint.ClusterEntrypoint [] -"
        "  Starting StandaloneSessionClusterEntrypoint (Version: 1.16.0, Scala: 2.12)\n"
    )
    path.write_text(banner + _TEXT)
    profile, _ = _read(path)
    assert (profile.process, profile.flink_version, profile.host) == (
        "jobmanager", "1.16.0", "node7",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["node7.gc.log", "node7.gc", "node7-gc.log.0", "node7.out"])
def test_other_files_of_a_process_are_of_its_host(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"flink-flink-taskexecutor-0-{name}"
    path.write_text("[2026-11-21T06:47:23.000+0000][0.003s][info][gc] Using G1\n")
    profile, _ = _read(path)
    assert (profile.process, profile.host) == ("taskmanager", "node7")


_BANNER = (
    "2026-11-21 06:47:23,000 INFO  a.B [] -  Starting TaskManager (Version: 1.16.0, Scala: x)\n"
)
_FRAME = "\tat org.apache.flink.runtime.taskmanager.Task.run(Task.java:546) ~[{}]\n"


@pytest.mark.parametrize(
    ("jars", "version"),
    [
        pytest.param(["flink-dist_2.11-1.11.2.jar:1.11.2"], "1.11.2", id="a Flink JAR"),
        pytest.param(
            ["flink-dist-1.20.0.jar:1.20.0"], "1.20.0", id="a JAR without a Scala version"
        ),
        pytest.param(["flink-dist_2.12-1.13.2-csa1.5.jar:1.13.2"], "1.13.2", id="a vendor JAR"),
        pytest.param(
            ["flink-rpc-akka_389b503d-2ddd-41bc-bcfe-8131da766be8.jar:1.15.2"],
            "1.15.2",
            id="a JAR without a version in its name",
        ),
        pytest.param(
            ["flink-connector-kafka-3.2.0-1.19.jar:3.2.0-1.19"],
            "1.19",
            id="the Flink line in a connector version",
        ),
        pytest.param(["flink-cdc-dist-3.1.0.jar:3.1.0"], None, id="a product on top of Flink"),
        pytest.param(["acme-flink-core-1.2.3.jar:1.2.3"], None, id="a user JAR"),
        pytest.param(
            ["flink-shaded-zookeeper-3.4.14.jar:3.4.14-11.0"], None, id="a shaded library"
        ),
    ],
)
def test_version_comes_from_jars_if_there_is_no_banner(
    jars: list[str], version: str | None, tmp_path: Path
) -> None:
    trace = "java.io.IOException: x\n" + "".join(_FRAME.format(jar) for jar in jars)
    for name, text, told in (("a", trace, version), ("b", trace + _BANNER, "1.16.0")):
        path = tmp_path / f"{name}.log"
        path.write_text(text)
        assert _read(path)[0].flink_version == told


def test_ranges_own_every_byte_once(tmp_path: Path) -> None:
    profile = FileProfile("a", 1000, is_splittable=True)
    ranges = plan_ranges([(profile, "d")], Settings(range_bytes=300))
    assert [(part.start, part.end) for part in ranges] == [
        (0, 300),
        (300, 600),
        (600, 900),
        (900, None),
    ]


def test_listing_reads_hidden_names_and_reports_what_it_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "orders" / "logs"
    folder.mkdir(parents=True)
    (folder / "_hidden.log").write_text("x")
    os.mkfifo(folder / "pipe")
    listing = list_inputs([str(tmp_path)])
    assert [Path(file.path).name for file in listing.files] == ["_hidden.log"]
    assert [item.reason for item in listing.quarantined] == ["not a regular file"]
    assert deployment_of(listing.files[0]) == "orders"
    with pytest.raises(UsageError, match="does not exist"):
        list_inputs([str(tmp_path / "nothing")])


def test_links_are_named_unless_what_they_lead_to_is_listed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("x")
    root = tmp_path / "logs"
    (root / "a").mkdir(parents=True)
    (root / "a" / "jm.log").write_text("x")
    (root / "again.log").symlink_to("a/jm.log")
    (root / "b").symlink_to("a")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    (root / "gone.log").symlink_to("a/gone.log")
    (root / "out").symlink_to(outside)
    (root / "out.log").symlink_to(outside / "secret.log")
    listing = list_inputs([str(root)])
    assert [file.path for file in listing.files] == [str(root / "a" / "jm.log")]
    assert {Path(item.path).name: item.reason for item in listing.quarantined} == {
        "gone.log": "a broken link",
        "loop": "a broken link",
        "out": "a link that leads out of the input",
        "out.log": "a link that leads out of the input",
        "up": "a link that leads out of the input",
    }


@pytest.fixture
def nest(tmp_path: Path) -> Iterator[Callable[[int], int]]:
    """Creates nested folders ``d`` and returns a file descriptor of the innermost one."""
    opened = [os.open(tmp_path, os.O_RDONLY)]

    def deeper(depth: int) -> int:
        for _ in range(depth):
            os.mkdir("d", dir_fd=opened[0])
            below = os.open("d", os.O_RDONLY, dir_fd=opened[0])
            os.close(opened.pop())
            opened.append(below)
        return opened[0]

    yield deeper
    os.close(opened[0])
    # Python's functions that remove a tree recurse once per folder.
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


@pytest.mark.parametrize("depth", [900, 1_900])
def test_a_log_in_deep_folders_is_found_in_little_time(
    depth: int, nest: Callable[[int], int], tmp_path: Path
) -> None:
    descriptor = os.open("a.log", os.O_CREAT | os.O_WRONLY, dir_fd=nest(depth))
    os.write(descriptor, _TEXT.encode())
    os.close(descriptor)
    began = time.process_time()
    (file,) = list_inputs([str(tmp_path)]).files
    assert time.process_time() - began < 3
    assert file.path == "/".join((str(tmp_path), *("d" * depth), "a.log"))


def test_folders_that_no_path_reaches_are_named(nest: Callable[[int], int], tmp_path: Path) -> None:
    nest(2_100)
    listing = list_inputs([str(tmp_path)])
    assert (listing.files, [q.reason for q in listing.quarantined]) == ((), ["file name too long"])


def test_listing_starts_before_any_file_is_examined(tmp_path: Path) -> None:
    """A file is settled if it is quiet at ``began_at``, even if a JVM starts slowly afterwards."""
    (tmp_path / "jobmanager.log").write_text("2026-05-10 10:00:00,000 INFO  a.B [] - one\n")
    before = datetime.now(UTC)
    listing = list_inputs([str(tmp_path)])
    assert before <= listing.began_at <= datetime.now(UTC)
    assert [file.path for file in listing.files] == [str(tmp_path / "jobmanager.log")]
