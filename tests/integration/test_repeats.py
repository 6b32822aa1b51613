"""Counting repeated events by their form gives the same result as analyzing each event in full."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.floods import FLOODS, write_flood
from flink_triage.analyzer import Analyzer
from flink_triage.diagnosis.timeline.fold import fold
from flink_triage.fold_grains import grains_of
from flink_triage.logs.readers import repeated_events as repeats
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.model import ByteRange, Observation, RangeScan
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import SignaturePack
from tests.integration.ranges import range_of

LOGS = Path(__file__).parents[1] / "logs"
GRAINS = len(grains_of(DEFAULT_SETTINGS.max_observations_per_key))
_ID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])|[0-9]+")
_FRAME = re.compile(r"\s+at ")
# On a busy machine, a regex may wait for CPU time.
PATIENT = replace(DEFAULT_SETTINGS, regex_timeout_seconds=60, signature_budget_seconds=3_600)
_TIME_CHARS = len("2026-11-21 06:47:23,468")


@pytest.fixture(scope="module")
def full(pack: SignaturePack) -> Analyzer:
    """An analyzer that analyzes each event in full. Its results are the reference."""
    return Analyzer(pack, PATIENT, is_recalling=False)


@pytest.fixture(autouse=True)
def learning_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts events by form as early as possible."""
    monkeypatch.setattr(repeats, "MET_FROM", 2)


def written(folder: Path, lines: Iterable[str]) -> Path:
    """Writes the log of a TaskManager, and returns its path."""
    path = folder / "flink-flink-taskexecutor-0-vm.log"
    path.write_text("".join(lines), encoding="utf-8")
    return path


# The observations, the count of each stack trace, and the accounting of a range.
Reading = tuple[list[Observation], dict[str, tuple[object, ...]], RangeScan]


def read(analyzer: Analyzer, byte_range: ByteRange, coarseness: int | None) -> Reading:
    tally = Tally()
    observations: list[Observation] = []
    traces: dict[str, list[tuple[int, datetime | None, datetime | None]]] = {}
    for portion in analyzer.read(byte_range, tally, coarseness=coarseness):
        observations += portion.observations
        for row in (*portion.traces, *portion.recurring):
            counts = row.count, row.first_seen_at, row.last_seen_at
            traces.setdefault(row.fingerprint.full, []).append(counts)
    summed = {
        name: (
            sum(count for count, _, _ in counts),
            min((first for _, first, _ in counts if first), default=None),
            max((last for _, _, last in counts if last), default=None),
        )
        for name, counts in traces.items()
    }
    return observations, summed, tally.finish(byte_range)


def assert_equal_reading(
    full: Analyzer, columns: Analyzer, path: Path, grains: Sequence[int]
) -> list[Reading]:
    """Returns the readings by ``columns``, one per grain."""
    byte_range = range_of(path)
    expected, traces, account = read(full, byte_range, None)
    readings = []
    for coarseness in grains:
        reading = read(columns, byte_range, coarseness)
        readings.append(reading)
        found, found_traces, found_account = reading
        assert fold(found, DEFAULT_SETTINGS, coarseness) == fold(
            expected, DEFAULT_SETTINGS, coarseness
        )
        assert found_traces == traces
        assert found_account.volumes == account.volumes
        assert found_account.newline_count == account.newline_count
        assert (found_account.redactions, found_account.decode_errors) == (
            account.redactions,
            account.decode_errors,
        )
        assert (
            found_account.event_bytes + found_account.counted_bytes
            == account.event_bytes + account.counted_bytes
        )
    return readings


@pytest.mark.parametrize("form", FLOODS)
def test_floods_are_counted_as_by_the_full_analyzer(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, form: str
) -> None:
    write_flood(form, tmp_path, 3 << 17)
    (path,) = tmp_path.iterdir()
    columns = Analyzer(pack, block_bytes=1 << 15)
    assert_equal_reading(full, columns, path, (0, 9, GRAINS - 1))


EMBEDDED_FACTS = (
    "login with password=q8zw{number} refused",
    "no answer from java.net.SocketTimeoutException: after {number} ms",
    "stopped, reason: com.example.ShopException: shelf {number} is empty",
    "gave up on Totals, task: Totals (3/{number})#1",
    "no news of job 0123456789abcdef0123456789abcdef",
    "Node {number} disconnected.",
    "nothing at com.example.Shop.run(Shop.java:{number})",
    "caf\u00e9 number {number} is closed",
    "closed &lt;{number}&gt; for good",
    "shelf - {number} is empty",
    "moved [x] - {number} in brackets ] ERROR a.B - that",
    "Job 0123456789abcdef0123456789abcdef reached terminal state FAILED.",
)


@pytest.mark.parametrize("header", ["{level} a.{name} [] - ", "[t-{name}] {level} a.{name} - "])
@pytest.mark.parametrize(
    ("coarseness", "set_back"),
    [
        pytest.param(0, 0, id="finest grain"),
        pytest.param(0, 70, id="finest grain, clock set back"),
        pytest.param(GRAINS - 1, 0, id="coarsest grain"),
        pytest.param(GRAINS - 1, 70, id="coarsest grain, clock set back"),
    ],
)
def test_facts_within_free_text_are_read_as_by_the_full_analyzer(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, header: str, coarseness: int, set_back: int
) -> None:
    chance = random.Random(header)
    words = ["shelf", "stock", "waiting", "closed", "order", "missing", "for", "good"]
    lines = []
    for number in range(3_000):
        head = header.format(level=chance.choice(["WARN ", "ERROR"]), name=chance.choice("BCD"))
        message = " ".join(chance.choices(words, k=6)) + f" {chance.randrange(10**6)}"
        if chance.random() < 0.1:
            message = chance.choice(EMBEDDED_FACTS).format(number=chance.randrange(10, 100))
        tick = number - set_back * (number % 500 > 450)
        at = f"2026-11-21 06:{tick // 600:02}:{tick // 10 % 60:02},{tick % 10:03}"
        lines.append(f"{at} {head}{message}\n")
    path = written(tmp_path, lines)
    columns = Analyzer(pack, block_bytes=1 << 14)
    assert_equal_reading(full, columns, path, (coarseness,))
    assert columns.repeats is not None
    assert columns.repeats.known_events > 2_000


def test_lines_without_a_separator_are_read_as_by_the_full_analyzer(
    full: Analyzer, pack: SignaturePack, tmp_path: Path
) -> None:
    """The thread names have different lengths, so the level does not begin at a fixed column."""
    chance = random.Random(7)
    lines = []
    for number in range(3_000):
        at = f"2026-11-21 06:{number // 600:02}:{number // 10 % 60:02},{number % 10:03}"
        thread = chance.choice(["main", "worker-1", "Source: Orders"])
        separator = " -" if number % 100 < 50 else ""
        lines.append(f"{at} [{thread}] ERROR a.B{separator} shelf {chance.choice('xyz')} waits\n")
    path = written(tmp_path, lines)
    columns = Analyzer(pack, block_bytes=1 << 14)
    assert_equal_reading(full, columns, path, (0, GRAINS - 1))
    assert columns.repeats is not None
    assert columns.repeats.known_events > 1_000


QUOTING = (
    "WARN  com.example.Shop [] - order '{word}' was lost\n"
    "com.example.ShopException: no shelf holds '{word}' any more\n\tat a.B.c(B.java:1)\n",
    "WARN  com.example.Shop [] - stopped\n"
    "java.lang.NumberFormatException: For input string: '{word}'. Invalid character found.\n"
    "\tat org.apache.flink.table.data.binary.BinaryStringDataUtil.toInt(Util.java:518)\n"
    "\tat StreamExecCalc$5.processElement(Unknown Source)\n",
    "WARN  com.example.Shop [] - not 'here'\n"
    "com.example.ShopException: neither '{word}' nor 'shelf{number}'\n\tat a.B.c(B.java:1)\n",
    "WARN  com.example.Shop [] - Couldn't read '{word}'\n"
    "com.example.ShopException: failed '{word}'\n\tat com.example.Shop.run(S.java:1)\n",
    "WARN  com.example.Shop [] - gave up\njava.lang.IllegalStateException: '{word}': closed\n"
    "\tat com.example.Shop.run(S.java:1)\nCaused by: com.example.Shelf: '{word}'\n"
    "\tat com.example.Shop.run(S.java:2)\n",
)
ODD_WORDS = (
    *(
        "sparkles",
        "flinkjob",
        "jobstate",
        "attempt_",
        "12345678",
        "Timeouts",
        "gradlews",
        "password",
    ),
    *(
        "TASKMANAGER",
        "0123456789abcdef01234567",
        "a.b.Error",
        "Error",
        "x y",
        "",
        "caf\u00e9",
        "job_1",
    ),
)


@pytest.mark.parametrize("template", QUOTING)
def test_quoted_words_are_read_as_by_the_full_analyzer(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, template: str
) -> None:
    chance = random.Random(template)
    literals = sorted(text for text in pack.literals if re.fullmatch(r"[\w-]{1,24}", text))
    lines = []
    for number in range(1_500):
        word = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789_-", k=8))
        if chance.random() < 0.3:
            word = chance.choice(chance.choice([ODD_WORDS, literals]))
        at = f"2026-11-21 06:{number // 30:02}:{number % 30:02},000"
        lines.append(f"{at} {template.format(word=word, number=number % 90 + 10)}")
    path = written(tmp_path, lines)
    columns = Analyzer(pack, PATIENT, block_bytes=1 << 15)
    assert_equal_reading(full, columns, path, (0, GRAINS - 1))
    found = read(columns, range_of(path), None)[0]
    assert found == read(full, range_of(path), None)[0]
    if "'{word}'. " in template:
        assert columns.recalled_count > 500


QUOTING_RECORDS = (
    "WARN  com.example.Shop [] - order was lost\n"
    "java.io.IOException: Failed to deserialize JSON '{text}'.\n"
    "\tat com.example.Shop.run(S.java:1)\n",
    "INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - Source: Orders "
    "({number}/90) (0123456789abcdef0123456789abcdef_cbc357ccb763df2852fee8c4fc7d55f2_0_1) "
    "switched from RUNNING to FAILED on 10.0.0.1:4242-1b0165 @ vm (dataPort=45323).\n"
    "java.lang.RuntimeException: \"{text}\" and '{text}' cannot be read\n"
    "\tat com.example.Shop.run(S.java:1) ~[shop.jar:?]\n"
    'Caused by: java.lang.NumberFormatException: For input string: "{text}"\n'
    "\tat java.lang.Integer.parseInt(Integer.java:652) ~[?:?]\n\t... 3 more\n",
    "WARN  com.example.Shop [] - gave up\n"
    "org.apache.flink.util.SerializedThrowable: java.io.IOException: bad record `{text}`\n"
    "\tat com.example.Shop.run(S.java:1)\n",
    "WARN  com.example.Shop [] - gave up\n"
    "io.javaoperatorsdk.operator.MissingCRDException: "
    "'{text}' v1 CRD was not found on the cluster\n"
    "\tat com.example.Shop.run(S.java:1)\n",
    "WARN  com.example.Shop [] - gave up\n"
    "java.lang.RuntimeException: java.lang.RuntimeException: '{text}'\n"
    "\tat com.example.Shop.run(S.java:1)\n",
    "WARN  com.example.Shop [] - gave up\n"
    "java.sql.SQLException: Invalid value '{text}' for column\nfor the key\n"
    "\tat com.example.Shop.run(S.java:1)\n",
    "WARN  com.example.Shop [] - gave up\njava.lang.IllegalStateException: password '{text}'\n"
    "\tat com.example.Shop.run(S.java:1)\n",
)
ODD_TEXTS = (
    "", " ", "x" * 90, "y z" * 300, "y z" * 800, "it\\'s", "12", "caf\u00e9", "a & b", "\x00",
    "at com.example.Shop.run(S.java:1)", "Caused by: java.io.IOException: no", "\\n at x",
    "java.io.IOException: no", "is not supported", "must be set", "Line 4", "null", "a.b.C: d",
    "(3/90)", "Source: Orders (3/90)#1", "0123456789abcdef0123456789abcdef", "10.0.0.1:9092",
    "password=hunter22x", "AKIAIOSFODNN7EXAMPLE", "2026-11-21 06:47:23,468 INFO  a.b.C [] - d",
    "... 3 more", "#011at a.b.C.d(E.java:1)", "<br>", "\t", "'", '"', "`", "''", '{"a": "b"}',
    "kafka.server.KafkaServer", "10s", "30m", "5d", "7h",
)  # fmt: skip


@pytest.mark.parametrize("template", QUOTING_RECORDS)
def test_quoted_texts_are_read_as_by_the_full_analyzer(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, template: str
) -> None:
    chance = random.Random(template)
    literals = sorted(text for text in pack.literals if "\n" not in text)
    lines = []
    for number in range(3_000):
        text = " ".join(chance.choices(["order", "payment", "Invoice", "x1", "42"], k=number % 7))
        if chance.random() < 0.4:
            odd = chance.choice(chance.choice([ODD_TEXTS, literals]))
            text = f"{text}{chance.choice(['', ' '])}{odd}{chance.choice(['', text])}".lstrip(" ")
        at = f"2026-11-21 06:{number // 60:02}:{number % 60:02},000"
        lines.append(f"{at} {template.format(text=text, number=number % 80 + 10)}")
    path = written(tmp_path, lines)
    columns = Analyzer(pack, PATIENT, block_bytes=1 << 15)
    assert_equal_reading(full, columns, path, (0, GRAINS - 1))
    assert columns.repeats is not None
    print(f"{columns.repeats.known_events:,} events by form")
    if "Shop [] - order" in template or "ExecutionGraph" in template:
        assert columns.repeats.known_events > 2_000


@pytest.mark.parametrize(
    "form", ["disconnects", "traces", "session", "records", "jobs", "errors", "json"]
)
def test_most_events_of_a_flood_are_recognized_by_their_form(
    pack: SignaturePack, tmp_path: Path, form: str
) -> None:
    write_flood(form, tmp_path, 4 << 20)
    (path,) = tmp_path.iterdir()
    columns = Analyzer(pack)
    repeats = columns.repeats
    assert repeats is not None
    for _ in range(2):
        repeats.known_events = repeats.other_events = 0
        read(columns, range_of(path), GRAINS - 2)
    share = repeats.known_events / (repeats.known_events + repeats.other_events)
    print(f"{form}: {share:.1%} of {repeats.known_events + repeats.other_events:,} events by form")
    assert share >= 0.95


def test_results_do_not_depend_on_where_blocks_and_ranges_are_cut(
    full: Analyzer, pack: SignaturePack, tmp_path: Path
) -> None:
    write_flood("disconnects", tmp_path, 1 << 20)
    (path,) = tmp_path.iterdir()
    whole = range_of(path)
    expected = fold(read(full, whole, None)[0], DEFAULT_SETTINGS)
    chance = random.Random(3)
    for block_bytes in (1 << 15, 70_001, 1 << 20):
        cuts = sorted(chance.sample(range(1, path.stat().st_size), 3))
        columns = Analyzer(pack, block_bytes=block_bytes)
        found = []
        for start, end in pairwise((0, *cuts, None)):
            found += read(columns, replace(whole, start=start, end=end), 0)[0]
        assert [without_line(o) for o in fold(found, DEFAULT_SETTINGS)] == [
            without_line(o) for o in expected
        ]


def without_line(observation: Observation) -> Observation:
    """Removes the line number, which is relative to the start of a range."""
    return replace(observation, event=replace(observation.event, line=0))


def other_numbers(text: str, chance: random.Random) -> str:
    """Replaces some numbers and IDs outside of frames. A few others differ in length or form."""

    def other(found: re.Match[str]) -> str:
        word = found[0]
        if chance.random() < 0.6:
            return word
        if chance.random() < 0.01:
            return chance.choice(["0", "012", "d" * len(word), "7" * len(word), "1" + word])
        letters = "0123456789abcdef" if len(word) >= 32 else "0123456789"
        return "".join(chance.choice(letters) for _ in word)

    return "\n".join(
        line if _FRAME.match(line) else line[:_TIME_CHARS] + _ID.sub(other, line[_TIME_CHARS:])
        for line in text.split("\n")
    )


def some_logs() -> Iterator[Path]:
    """Yields the logs in layouts of Log4j and Logback."""
    for path in sorted(LOGS.rglob("*.log")):
        if range_of(path).profile.layout.startswith(("log4j", "logback")):
            yield path


SECRETS: dict[str, str] = {
    "digits": "login failed: password={digits}",
    "words": "login failed: password={word}, attempt {number}",
    "id": "login failed: s3.secret-key: {id}, attempt {number}",
    "option": "Loading configuration property: sasl.password, {digits}",
    "token": "call {number} failed: Authorization: Bearer {word}{digits}",
    "access key": "call {number} failed with AKIA{upper}",
    "address": "no route to kafka://shop:{digits}x@10.0.0.{number}:9092",
    "named character": "login failed: password&#{sign};{word}",
    "below": "login failed\njava.io.IOException: api-key={digits}\n\tat a.B.c(D.java:1)",
}


@pytest.mark.parametrize("template", SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_in_a_repeated_event_reaches_no_observation(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, template: str
) -> None:
    """The first 160 events do not contain a secret.

    In the case "named character", they have the same form as the later events, so the form is
    already learned when the first secret occurs.
    """
    chance = random.Random(template)
    secrets: set[str] = set()
    lines = []
    for number in range(480):
        is_hidden = number < 160 and "{sign}" not in template
        words = {
            "number": str(chance.randrange(10, 100)),
            "word": f"q{chance.getrandbits(60):x}zw",
            "digits": str(chance.randrange(10**9, 10**10)),
            "id": f"{chance.getrandbits(128):032x}",
            "upper": "".join(chance.choices("ABCDEFGH234567", k=16)),
            "sign": "99" if number < 160 else "61",
        }
        if number >= 160:
            secrets |= {
                words[name] for name in ("word", "digits", "id", "upper") if name in template
            }
        if is_hidden:
            words |= dict.fromkeys(("word", "digits", "id", "upper"), "******")
        at = f"2026-11-21 06:{number // 600:02}:{number // 10 % 60:02},{number % 10:03}"
        lines.append(f"{at} ERROR com.example.Shop [] - {template.format(**words)}\n")
    path = written(tmp_path, lines)
    columns = Analyzer(pack, block_bytes=1 << 14)
    grains = (0, 10, GRAINS - 1)
    readings = assert_equal_reading(full, columns, path, grains)
    for coarseness, (found, traces, account) in zip(grains, readings, strict=True):
        assert account.redactions >= 320
        shown = repr((found, fold(found, DEFAULT_SETTINGS, coarseness), traces))
        assert not [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize("part", range(4))
def test_repeated_real_logs_with_changed_numbers(
    full: Analyzer, pack: SignaturePack, tmp_path: Path, part: int
) -> None:
    chance = random.Random(part)
    columns = Analyzer(pack, block_bytes=1 << 16)
    count = 0
    for path in list(some_logs())[part::32]:
        assert_equal_reading(full, columns, path, (0,))
        text = path.read_bytes()[:40_000].decode("utf-8", "replace")
        copy = tmp_path / path.name
        copy.write_text("".join(other_numbers(text, chance) for _ in range(8)))
        assert_equal_reading(full, columns, copy, (chance.randrange(GRAINS), 0))
        count += 1
    assert count > 2
    assert columns.repeats is not None
    assert columns.repeats.known_events > 100
