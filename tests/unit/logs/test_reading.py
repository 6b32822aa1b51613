"""Options that describe the logs: encoding, custom layouts, and names to mask."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.cli.arguments import options_of
from flink_triage.cli.main import build_parser
from flink_triage.errors import UsageError
from flink_triage.local import Options, scan_inputs, with_layouts
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.readers.scan import Scanner
from flink_triage.logs.text.personal import redact_personal
from flink_triage.model import ByteRange, RangeScan
from flink_triage.settings import Reading, Settings


def _scan(path: Path, reading: Reading) -> RangeScan:
    settings = Settings(reading=reading, regex_timeout_seconds=0.05)
    profile = probe(list_inputs([str(path)], settings).files[0], settings)
    scan = Scanner((), settings).scan(ByteRange(profile, "d"))
    if profile.compression == "none":
        assert scan.event_bytes + scan.counted_bytes == path.stat().st_size
    return scan


def _log(word: str) -> str:
    return (
        "2026-11-21 06:48:22,468 INFO  org.apache.flink.Foo [] - fine\n"
        f"2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - {word}\n"
        f"java.io.IOException: {word}\n\tat org.apache.flink.Foo.bar(Foo.java:12)\n"
    )


@pytest.mark.parametrize(
    ("encoding", "word"),
    [
        ("gbk", "设备上没有空间 拒绝连接"),
        ("gb18030", "设备上没有空间"),
        ("big5", "拒絕連線"),
        ("shift_jis", "デバイスに空き領域がありません"),
        ("euc_kr", "장치에 남은 공간이 없음"),
        ("latin-1", "Auf dem Gerät ist kein Speicherplatz mehr verfügbar"),
        ("cp1252", "l’espace disponible est épuisé"),
        ("koi8-r", "Отказано в доступе"),
        ("utf-16-le", "拒绝连接"),
        ("utf-16-be", "Gerät"),
        ("utf-8", "Gerät 拒绝"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_a_stated_encoding_is_read(
    encoding: str, word: str, is_packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    data = _log(word).encode(encoding)
    path.write_bytes(gzip.compress(data) if is_packed else data)
    scan = _scan(path, Reading(encoding=encoding))
    assert [(e.level, e.message) for e in scan.events] == [("ERROR", word)]
    assert scan.events[0].continuation is not None
    assert scan.events[0].continuation.startswith(f"java.io.IOException: {word}\n")
    assert scan.decode_errors == 0


def test_invalid_utf8_is_replaced_and_counted_by_default(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(_log("Gerät").encode("latin-1"))
    scan = _scan(path, Reading())
    assert [e.message for e in scan.events] == ["Ger\ufffdt"]
    assert scan.decode_errors == 2


@pytest.mark.parametrize("bom", [True, False], ids=["with a byte order mark", "without"])
def test_stated_encoding_does_not_affect_utf8_files(bom: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(_log("Gerät").encode("utf-8-sig" if bom else "utf-8"))
    assert [e.message for e in _scan(path, Reading(encoding="gbk")).events] == ["Gerät"]


_OWN = r"(?P<level>[EIW])(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)~(?P<thread>[^~]+)~(?P<message>.*)"
_OWN_LOG = (
    "I2026-11-21 06:48:22~main~fine\n"
    "E2026-11-21 06:48:23~task-1~it failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat org.apache.flink.Foo.bar(Foo.java:12)\n"
    "I2026-11-21 06:48:24~main~fine again\n"
)


def test_user_defined_layout_separates_events(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(_OWN_LOG)
    (event,) = _scan(path, Reading(layouts=(_OWN,))).events
    assert (event.level, event.thread, event.message) == ("E", "task-1", "it failed")
    assert event.logged_at == datetime(2026, 11, 21, 6, 48, 23, tzinfo=UTC)
    assert event.continuation is not None
    assert event.continuation.count("\n") == 1


def test_other_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(_log("it failed"))
    (event,) = _scan(path, Reading(layouts=(_OWN,))).events
    assert (event.level, event.logger) == ("ERROR", "org.apache.flink.Foo")


def test_a_layout_lies_beside_the_signatures(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "layouts.yaml").write_text(
        f"- name: acme\n  regex: '{_OWN}'\n  example: E2026-11-21 06:48:23~task-1~it failed\n"
    )
    path = tmp_path / "a.log"
    path.write_text(_OWN_LOG)
    options = Options(signature_directories=(pack,))
    assert with_layouts(options).settings.reading.layouts == (_OWN,)
    scanned = scan_inputs([str(path)], options, lambda done, total: None)
    assert [o.event.message for r in scanned.results for o in r.observations] == ["it failed"]


def test_a_layout_that_is_too_slow_is_switched_off_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("own\n" + _log("it failed") + "x" * 60 + "!\n" + _log("again"))
    scan = _scan(path, Reading(layouts=(r"(?P<level>own|(?:x|xx)+$)",)))
    assert [e.message for e in scan.events if e.level == "ERROR"] == ["it failed", "again"]
    assert ["took longer than" in problem.reason for problem in scan.problems] == [True]


_LIST = "name, regex, example"


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        pytest.param(
            "a: [",
            ["2: yaml: did not find expected node content at column 1"],
            id="invalid YAML",
        ),
        pytest.param(
            "- {name: a, regex: 2026-99-99, example: x}",
            [
                "1: regex: '2026-99-99' has the groups []; allowed: at, level, logger, thread, "
                "message, job, and at or level is required"
            ],
            id="an invalid date",
        ),
        pytest.param("[" * 5000, ["1: yaml: is nested deeper than 20"], id="too many brackets"),
        pytest.param(
            "- &a [1]\n- *a",
            ["1: yaml: anchors are not allowed, got &a; write out the value"],
            id="an alias",
        ),
        pytest.param(
            "x" * (256 * 1024 + 1),
            ["1: file: is larger than 256 KiB, the maximum file size"],
            id="too large",
        ),
        pytest.param("a\xff", ["1: file: is not UTF-8 at byte 1"], id="invalid UTF-8"),
        pytest.param(
            "a\0",
            ["1: yaml: contains a control character: control characters are not allowed"],
            id="null byte",
        ),
        pytest.param("", ["1: yaml: is empty"], id="empty"),
        pytest.param(
            "a: b", [f"1: layouts: is not a list of layouts, each with {_LIST}"], id="a map"
        ),
        pytest.param("- a", [f"1: layout: is not a mapping with {_LIST}"], id="a word"),
        pytest.param(
            "- name: a\n  regex: [x]\n  xample: y\n- regex: (\n  name: b\n  example: c\n",
            [
                "2: regex: is not a string",
                f"3: xample: is unknown, allowed: {_LIST}",
                "1: example: is missing",
                "4: regex: '(' is not a regex: missing ) at position 1",
            ],
            id="several problems at once",
        ),
        pytest.param(
            "- name: a\n  regex: '(?P<at>x)'\n  example: y",
            ["3: example: is not matched by the regex"],
            id="an example that the regex does not match",
        ),
        pytest.param(
            "- {name: a, regex: '(?P<at>(?:x|xx)+)$', example: '" + "x" * 60 + "!'}",
            [
                "1: example: partial: the layout '(?P<at>(?:x|xx)+)$' took longer than 1.0 s on a "
                "line and was switched off"
            ],
            id="slow",
        ),
    ],
)
def test_problems_of_a_layout_file_are_named_with_their_lines(
    content: str, problems: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "layouts.yaml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError) as refused:
        with_layouts(Options(signature_directories=(tmp_path,)))
    assert str(refused.value).splitlines() == [f"{path}:{problem}" for problem in problems]


def test_a_layout_file_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "layouts.yaml")
    with pytest.raises(UsageError, match="1: file: is not a regular file"):
        with_layouts(Options(signature_directories=(tmp_path,)))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--encoding", "klingon"], "is not a supported encoding"),
        (["--encoding", "hex"], "is not a supported encoding"),
        (["--encoding", "utf-7\0"], "is not a supported encoding"),
        (["--encoding", "cp500"], "is not a supported encoding"),
        (["--layout", "("], "is not a regex"),
        (["--layout", "(?P<message>.+)"], "at or level is required"),
        (["--layout", "(?P<at>x)(?P<when>y)"], "allowed: at, level"),
        (["--layout", "(?P<at>x?)"], "matches an empty line"),
    ],
)
def test_wrong_flags_are_refused(flags: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options_of(build_parser().parse_args(["diagnose", "x", *flags]))


def test_flags_reach_the_stages() -> None:
    flags = ["--encoding", "GBK", "--layout", "(?P<at>x)", "--redact", "pii"]
    options = options_of(build_parser().parse_args(["diagnose", "x", *flags]))
    assert options.settings.reading == Reading("gbk", ("(?P<at>x)",), True)


_PERSONAL = {
    "pekko.tcp://flink@10.0.0.7:6123/user": "pekko.tcp://flink@[REDACTED:host]:6123/user",
    "akka.tcp://flink@node7.acme.com:6123/user": "akka.tcp://flink@[REDACTED:host]:6123/user",
    "hdfs://node01:8020/flink/chk": "hdfs://[REDACTED:host]:8020/flink/chk",
    "on 10.1.2.3:34567-a1b2c3 @ node7 (dataPort=41578).": (
        "on [REDACTED:ip]:34567-a1b2c3 @ [REDACTED:host] (dataPort=41578)."
    ),
    "write to bob.smith@acme.com today": "write to [REDACTED:email] today",
    " OS current user: flink": " OS current user: [REDACTED:user]",
    "/home/bob/flink": "/home/[REDACTED:user]/flink",
    "broker kafka-0.kafka:9092 (id: -1)": "broker [REDACTED:host]:9092 (id: -1)",
    "ip-10-0-0-7.ec2.internal": "[REDACTED:ip]",
    "fe80::1ff:fe23:4567:890a is up": "[REDACTED:ip] is up",
}  # fmt: skip
_NOT_PERSONAL = [
    "\tat org.apache.flink.Foo.bar(Foo.java:1234) ~[flink-dist-1.16.0.jar:1.16.0]",
    "org.apache.kafka.common.errors.TimeoutException: x",
    "state.backend.rocksdb.localdir: /tmp/x",
    "http://localhost:8081/#/overview",
    "s3://my-bucket/chk-1/000031.sst",
    "Completed checkpoint 5 for job d1dfe4260f6b4a9c8e7d6c5b4a392817 (12345 bytes) at 06:47:23",
    "(Version: 1.16.0, Scala: 2.12, Rev:83a5f3b)",
    "127.0.0.1:8081",
    "com.acme.orders.Job.main:1234",
]


@pytest.mark.parametrize("text", sorted(_PERSONAL))
def test_names_of_people_and_machines_are_masked(text: str) -> None:
    masked, count = redact_personal(text)
    assert (masked, bool(count)) == (_PERSONAL[text], True)
    assert redact_personal(masked) == (masked, {})


@pytest.mark.parametrize("text", _NOT_PERSONAL)
def test_values_that_diagnosis_needs_are_not_masked(text: str) -> None:
    assert redact_personal(text) == (text, {})


@pytest.mark.parametrize("lead", ["", "> "], ids=["block reader", "line reader"])
def test_both_readers_mask_and_count(lead: str, tmp_path: Path) -> None:
    path = tmp_path / "flink-flink-taskexecutor-0-node7.log"
    text = _log("no route to 10.0.0.7") * 5
    path.write_text("".join(f"{lead}{line}\n" for line in text.split("\n")[:-1]))
    plain = _scan(path, Reading())
    masked = _scan(path, Reading(redacts_personal=True))
    assert (plain.redactions, masked.redactions) == (0, 10)
    assert "10.0.0.7" not in repr(masked.events)
    assert masked.range.profile.host is None
    assert [e.offset for e in masked.events] == [e.offset for e in plain.events]
