"""Support bundles and aggregated YARN logs: the files that are read, and those rejected."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from flink_triage.local import Options, scan_inputs
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import Listing, deployment_of, list_inputs, open_binary
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange
from flink_triage.settings import DEFAULT_SETTINGS, MIB, Settings
from tests.fuzz.archives import zipped

_STOCK = "".join(
    f"2026-11-21 06:47:{n % 60:02},468 INFO  org.apache.flink.Foo [] - message {n}\n"
    for n in range(200)
)
_FAILURE = (
    "2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - it failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat org.apache.flink.Foo.bar(Foo.java:12)\n"
)
_TEXT = (_STOCK + _FAILURE).encode()
_FILES = {"bundle/jm.log": _TEXT, "bundle/logs/tm.log.1": gzip.compress(_TEXT)}


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_795_000_000
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _errors(listing: Listing, limits: Settings = DEFAULT_SETTINGS) -> list[str]:
    """Returns the messages of all ERROR events. Each byte must be accounted for."""
    scanner = Scanner((), limits)
    messages = []
    for file in listing.files:
        profile = probe(file, limits)
        scan = scanner.scan(ByteRange(profile, "d"))
        if profile.compression == "none":
            owned = scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes
            assert owned == file.size_bytes
        messages += [event.message for event in scan.events if event.level == "ERROR"]
    return messages


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        pytest.param("bundle.tar", _tar, id="tar"),
        pytest.param("bundle.tgz", lambda files: gzip.compress(_tar(files)), id="tar.gz"),
        pytest.param("bundle.tar.bz2", lambda files: bz2.compress(_tar(files)), id="tar.bz2"),
        pytest.param("bundle.tar.xz", lambda files: lzma.compress(_tar(files)), id="tar.xz"),
        pytest.param("bundle.zip", _zip, id="zip"),
        pytest.param("bundle.log", lambda files: gzip.compress(_tar(files)), id="any name"),
    ],
)
def test_members_are_files(
    name: str, pack: Callable[[dict[str, bytes]], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(_FILES))
    listing = list_inputs([str(tmp_path)])
    assert [file.path for file in listing.files] == [f"{path}!/{member}" for member in _FILES]
    assert {deployment_of(file) for file in listing.files} == {"bundle/bundle"}
    assert listing.quarantined == ()
    assert _errors(listing) == ["it failed"] * 2


def test_a_bundle_is_read_by_a_pool_of_processes(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tgz"
    long = (_STOCK * 700).encode()
    path.write_bytes(gzip.compress(_tar({f"{n}.log": long + _TEXT for n in range(4)}), 1))
    scanned = scan_inputs([str(path)], Options(workers=2), lambda done, total: None)
    assert sorted(
        (r.scan.range.profile.path[-5:], o.event.message)
        for r in scanned.results
        for o in r.observations
    ) == [(f"{n}.log", "it failed") for n in range(4)]


def _hostile_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("../../etc/cron.log", "/etc/passwd.log", "ok.log", "ok.log", "a/../b.log"):
            info = tarfile.TarInfo(name)
            info.size = len(_TEXT)
            archive.addfile(info, io.BytesIO(_TEXT))
        for kind, name in ((tarfile.SYMTYPE, "link.log"), (tarfile.LNKTYPE, "hard.log")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/shadow"
            archive.addfile(info)
        device = tarfile.TarInfo("device.log")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    return out.getvalue()


def _hostile_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("../../etc/cron.log", "/etc/passwd.log", "ok.log", "C:\\a.log", "a/../b.log"):
            archive.writestr(name, _TEXT)
        link = zipfile.ZipInfo("link.log")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/shadow")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        pytest.param(
            _hostile_tar(),
            {
                "../../etc/cron.log": 'a path with ".." inside an archive',
                "/etc/passwd.log": "an absolute path inside an archive",
                "ok.log": "a duplicate member name",
                "a/../b.log": 'a path with ".." inside an archive',
                "link.log": "a link inside an archive",
                "hard.log": "a link inside an archive",
                "device.log": "not a regular file",
            },
            id="tar",
        ),
        pytest.param(
            _hostile_zip(),
            {
                "../../etc/cron.log": 'a path with ".." inside an archive',
                "/etc/passwd.log": "an absolute path inside an archive",
                "C:\\a.log": "an absolute path inside an archive",
                "a/../b.log": 'a path with ".." inside an archive',
                "link.log": "a link inside an archive",
            },
            id="zip",
        ),
    ],
)
def test_hostile_members_are_refused_by_name(
    data: bytes, refused: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(data)
    listing = list_inputs([str(path)])
    assert [file.path for file in listing.files] == [f"{path}!/ok.log"]
    reasons = {q.path.removeprefix(f"{path}!/"): q.reason for q in listing.quarantined}
    assert reasons == refused
    assert _errors(listing) == ["it failed"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle"]


def test_counts_and_sizes_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(_zip({f"{n}.log": b"x\n" * 50 for n in range(5)}))
    limits = Settings(max_archive_members=3)
    listing = list_inputs([str(path)], limits)
    assert len(listing.files) == 3
    assert [q.reason for q in listing.quarantined] == ["partial: only the first 3 members are read"]
    other = tmp_path / "other.zip"
    other.write_bytes(_zip({f"{n}.log": b"x\n" * 50 for n in range(5)}))
    listing = list_inputs([str(other)], Settings(max_file_bytes=250))
    assert (len(listing.files), len(listing.quarantined)) == (2, 3)


@pytest.mark.parametrize("share", [0.6, 0.75, 0.9])
def test_truncated_bundle_is_read_up_to_the_cut_and_reported(share: float, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tgz"
    data = gzip.compress(_tar({f"{n}.log": _TEXT for n in range(20)}))
    path.write_bytes(data[: int(len(data) * share)])
    listing = list_inputs([str(path)])
    assert [q.path for q in listing.quarantined] == [str(path)]
    assert listing.quarantined[0].reason.startswith("partial: ")
    assert set(_errors(listing)) == {"it failed"}


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    data = bytearray(_zip({"a.log": _TEXT}))
    data[6] |= 1  # the flags in the local file header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flags in the central directory
    path.write_bytes(bytes(data))
    assert [q.reason for q in list_inputs([str(path)]).quarantined] == ["encrypted"]


def test_a_damaged_member_is_partial_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    data = bytearray(_zip({"a.log": _TEXT, "b.log": _TEXT}))
    data[60:90] = bytes(30)
    path.write_bytes(bytes(data))
    scanned = scan_inputs([str(path)], Options(), lambda done, total: None)
    problems = {p.path for r in scanned.results for p in r.scan.problems}
    assert problems == {f"{path}!/a.log"}
    observed = {o.event.path for r in scanned.results for o in r.observations}
    assert f"{path}!/b.log" in observed


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(_zip({}), "binary: too many control bytes for text", id="an empty zip"),
        pytest.param(_tar({"a.tar": _tar(_FILES)}), "binary: tar archive", id="a tar in a tar"),
        pytest.param(_zip({"a.zip": _zip(_FILES)}), "binary: zip archive", id="a zip in a zip"),
    ],
)
def test_unsupported_archives_are_quarantined(data: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(data)
    listing = list_inputs([str(path)])
    assert [probe(file, DEFAULT_SETTINGS).problem for file in listing.files] == [problem]
    assert listing.quarantined == ()


_HADOOP3 = (
    "Container: container_e01_1600000000000_0001_01_000001 on node1.example.com_45454\n"
    "LogAggregationType: AGGREGATED\n"
    "=================================================================\n"
    "LogType:jobmanager.log\nLogLastModifiedTime:Tue Sep 22 12:13:09 +0000 2020\n"
    f"LogLength:{len(_TEXT)}\nLogContents:\n{_TEXT.decode()}\nEnd of LogType:jobmanager.log\n"
    "*****************************************************************\n\n"
    "Container: container_e01_1600000000000_0001_01_000002 on node2.example.com_45454\n"
    "LogAggregationType: AGGREGATED\n"
    "=================================================================\n"
    "LogType:taskmanager.log\nLogLastModifiedTime:Tue Sep 22 12:13:09 +0000 2020\n"
    f"LogLength:{len(_TEXT)}\nLogContents:\n{_TEXT.decode()}\nEnd of LogType:taskmanager.log\n"
    "*****************************************************************\n\n"
)
_HADOOP2 = (
    "26/11/21 06:40:14 INFO client.RMProxy: Connecting to ResourceManager at rm/10.0.0.1:8032\n\n\n"
    "Container: container_1600000000000_0001_01_000001 on node1.example.com_45454\n"
    "=====================================================================\n"
    "LogType:jobmanager.log\nLog Upload Time:Mon Feb 05 07:39:12 +0000 2018\n"
    f"LogLength:{len(_TEXT)}\nLog Contents:\n{_TEXT.decode()}\nEnd of LogType:jobmanager.log\n\n"
    "LogType:jobmanager.out\nLog Upload Time:Mon Feb 05 07:39:12 +0000 2018\n"
    "LogLength:0\nLog Contents:\nEnd of LogType:jobmanager.out\n\n\n"
    "Container: container_1600000000000_0001_01_000002 on node2.example.com_45454\n"
    "=====================================================================\n"
    "LogType:taskmanager.log\nLog Upload Time:Mon Feb 05 07:39:12 +0000 2018\n"
    f"LogLength:{len(_TEXT)}\nLog Contents:\n{_TEXT.decode()}\nEnd of LogType:taskmanager.log\n"
)


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("text", [_HADOOP2, _HADOOP3], ids=["Hadoop 2", "Hadoop 3"])
def test_sections_of_yarn_are_files_with_their_host_and_process(
    text: str, is_packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "application_1600000000000_0001.log"
    data = text.encode()
    path.write_bytes(gzip.compress(data) if is_packed else data)
    listing = list_inputs([str(tmp_path)])
    profiles = [probe(file, DEFAULT_SETTINGS) for file in listing.files]
    found = [
        (profile.path.rpartition("/")[2], profile.host, profile.process)
        for profile in profiles
        if not profile.path.endswith(".out")
    ]
    assert found == [
        ("jobmanager.log", "node1.example.com", "jobmanager"),
        ("taskmanager.log", "node2.example.com", "taskmanager"),
    ]
    assert {deployment_of(file) for file in listing.files} == {"application_1600000000000_0001"}
    assert sum(file.size_bytes for file in listing.files) == len(data)
    assert _errors(listing) == ["it failed"] * 2


def test_headings_are_found_wherever_reading_is_cut(tmp_path: Path) -> None:
    """Files are read in chunks of 4 MiB. The sections span several chunks."""
    lengths = [4 * MIB // 40 + step for step in range(-40, 41)]
    sections = [
        f"Container: container_1_1_01_{n:06} on node{n}.example.com_45454\n"
        f"LogType:tm.log\nLog Contents:\n{'x' * length}\n"
        for n, length in enumerate(lengths)
    ]
    path = tmp_path / "application_1.log"
    path.write_text("".join(sections))
    files = list_inputs([str(path)]).files
    assert [file.size_bytes for file in files] == [len(section) for section in sections]
    assert [file.host for file in files] == [f"node{n}.example.com" for n in range(len(lengths))]


@pytest.mark.parametrize("method", ["stored", "deflate", "bz2", "lzma"])
def test_members_of_a_zip_are_read_from_any_byte(method: str, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped({"a.log": _TEXT, "b.log": _TEXT * 100}, method))
    with open_binary(f"{path}!/b.log") as member:
        assert member.read() == _TEXT * 100
        for at in (70_000, 3, len(_TEXT) * 100 - 5):
            assert member.seek(at) == at
            assert member.read(9) == (_TEXT * 100)[at : at + 9]


def test_a_zip_member_without_a_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    # A name ends at its first null byte.
    path.write_bytes(
        zipped({"x.log": _TEXT, "b.log": _TEXT}, "stored").replace(b"x.log", b"\0.log")
    )
    assert {file.path for file in list_inputs([str(path)]).files} == {f"{path}!/", f"{path}!/b.log"}


@pytest.mark.parametrize(
    ("at", "problem"),
    [
        pytest.param(16, "checksum does not match", id="checksum"),
        pytest.param(24, "continues after", id="stated size is too small"),
    ],
)
def test_member_that_contradicts_the_central_directory_is_partial(
    at: int, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.zip"
    data = bytearray(_zip({"a.log": _TEXT}))
    data[data.index(b"PK\x01\x02") + at] ^= 1
    path.write_bytes(bytes(data))
    scanned = scan_inputs([str(path)], Options(), lambda done, total: None)
    (reason,) = [p.reason for r in scanned.results for p in r.scan.problems]
    assert problem in reason


def test_members_after_a_damaged_header_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar"
    data = bytearray(_tar({"a.log": _TEXT, "b.log": _TEXT, "c.log": _TEXT}))
    data[data.index(b"b.log")] = 0xFF
    path.write_bytes(bytes(data))
    listing = list_inputs([str(path)])
    assert [file.path[-5:] for file in listing.files] == ["a.log", "c.log"]
    assert [q.reason[:24] for q in listing.quarantined] == ["partial: damaged: bad ch"]


def test_a_bundle_that_tar_made(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "orders").mkdir(parents=True)
    (folder / "orders" / "jm.log").write_bytes(_TEXT)
    bundle = tmp_path / "out.tar.gz"
    subprocess.run(["tar", "-czf", bundle, "-C", folder, "orders"], check=True)
    listing = list_inputs([str(bundle)])
    assert [deployment_of(file) for file in listing.files] == ["out/orders"]
    assert _errors(listing) == ["it failed"]
