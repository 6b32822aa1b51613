"""Damages real logs in ways that collectors, crashes, people, and attackers may cause.

All random choices come from one generator, so a seed always produces the same bytes.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

LOGS = Path(__file__).resolve().parents[1] / "logs"
# The maximum size of a log before it is mutated. Many small logs reveal more faults than a few
# large ones.
MAX_BYTES = 24 * 1024

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def corpus() -> tuple[bytes, ...]:
    """The bytes of every file ``*.log`` in the recorded logs, in order of their paths."""
    return tuple(path.read_bytes() for path in sorted(LOGS.rglob("*.log")))


# Mutations may multiply the size; large logs have separate tests (``heavy``).
MAX_MUTATED_BYTES = 4 << 20


def mutated(seed: int, logs: Sequence[bytes]) -> bytes:
    """A damaged log, which consists of parts of ``logs`` and of inserted text."""
    drawn = random.Random(seed)
    data = _window(drawn, drawn.choice(logs))
    for _ in range(drawn.choice((1, 1, 2, 3, 5))):
        data = drawn.choice(MUTATIONS)(drawn, data, logs)[:MAX_MUTATED_BYTES]
    # Compressing or archiving is the last step. The compressed file may be damaged, too.
    if drawn.random() < 0.12:
        data = _packed(drawn, data)
    return data


def _window(drawn: random.Random, data: bytes) -> bytes:
    """A random part of the log that starts at the beginning of a line."""
    size = drawn.choice((200, 1_000, 3_000, 8_000, MAX_BYTES))
    start = drawn.randrange(max(len(data) - size, 1))
    begin = data.rfind(b"\n", 0, start) + 1
    return data[begin : begin + size]


def _at(drawn: random.Random, data: bytes) -> int:
    return drawn.randrange(len(data) + 1)


def _insert(drawn: random.Random, data: bytes, piece: bytes) -> bytes:
    at = _at(drawn, data)
    return data[:at] + piece + data[at:]


def flip_bytes(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    flipped = bytearray(data)
    for _ in range(drawn.randint(1, 40) if data else 0):
        flipped[drawn.randrange(len(flipped))] = drawn.randrange(256)
    return bytes(flipped)


def cut_out(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    one, other = sorted((_at(drawn, data), _at(drawn, data)))
    return data[:one] + data[other:]


def cut_ends(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    one, other = sorted((_at(drawn, data), _at(drawn, data)))
    return data[one:other]


def splice(drawn: random.Random, data: bytes, logs: Sequence[bytes]) -> bytes:
    other = _window(drawn, drawn.choice(logs))
    return data[: _at(drawn, data)] + other[_at(drawn, other) :]


def interleave(drawn: random.Random, data: bytes, logs: Sequence[bytes]) -> bytes:
    rest = _window(drawn, drawn.choice(logs)).split(b"\n")
    lines: list[bytes] = []
    for line in data.split(b"\n"):
        lines.append(line)
        while rest and drawn.random() < 0.3:
            lines.append(rest.pop(0))
    return b"\n".join(lines)


def repeat_lines(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = drawn.randrange(len(lines))
    block = lines[at : at + drawn.randint(1, 8)] * drawn.choice((2, 5, 60))
    return b"\n".join([*lines[:at], *block, *lines[at:]])


def shuffle_lines(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = drawn.randrange(len(lines))
    part = lines[at : at + 30]
    drawn.shuffle(part)
    return b"\n".join([*lines[:at], *part, *lines[at + 30 :]])


def change_line_ends(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    end = drawn.choice((b"\r\n", b"\r", b"\n\r", b"\n\n", b"\x0b\n", b"\xe2\x80\xa8", b"\xc2\x85"))
    if drawn.random() < 0.5:
        return data.replace(b"\n", end)
    return b"\n".join(line + end[:-1] * (drawn.random() < 0.2) for line in data.split(b"\n"))


_STRANGE = (
    b"\0" * 3, b"\0" * 5000, b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe2\x80\xae", b"\x1b[31m", b"\x1b]0;x",
    b"\x1b[" + b"9" * 300, b"\x00\xd8", b"\x1a", b"\x7f", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0c",
    "\U0001f4a5".encode(), b"\\ud83d", b"\\u0000", b"&lt;init&gt;", b"&#x110000;", b"&#0;",
    b"%s%n{}", b"${jndi:x}", b"a" * 30_000, b"(" * 400, b"[" * 400, b"{" * 2000, b"\t" * 900,
    b" " * 9000, b"." * 5000, b"a." * 3000, b"$$Lambda$1/0x00" * 300, b"\"" * 333, b"\\" * 999,
    b"::" * 500, b"password=", b"-----BEGIN PRIVATE KEY-----", b"://a:" + b"b" * 3000 + b"@",
)  # fmt: skip
_NOISE = (
    b"2026-11-21 06:47:23,468 ", b"2026-99-99 99:99:99,999 ERROR a.B [] - x",
    b"0000-00-00 00:00:00,000 WARN  a.B [] - year zero", b"9999-12-31 23:59:59,999 INFO  a.B [] - ",
    b"2026-11-21T06:47:23.468-99:99 ERROR a.B - x", b"[2026-11-21 06:47:23,468] {",
    b"ERROR", b"[ERROR]", b"INFO - - - -", b"Caused by:", b"Caused by: ", b"Caused by: a.E",
    b"Suppressed: java.lang.Exception: x", b"\tat a.b.C.d(E.java:1)", b"at", b"\t... 99999999 more",
    b"... -1 more", b"[CIRCULAR REFERENCE: java.lang.E]", b"Traceback (most recent call last):",
    b'  File "x.py", line 99999999999999999999, in f', b"java.lang.NullPointerException",
    b"1700000000000 ERROR a.B - x", b"99999999999999999 ERROR a.B - x", b"{}", b"{", b"[]",
    b'{"message": null}', b'{"@timestamp": 1e400, "message": "x", "level": "ERROR"}',
    b'{"timestamp": {"epochSecond": 1e99}, "message": "m"}', b'{"log": "x", "stream": 3}',
    b'{"message": "\\ud83d \\udc00", "error.stack_trace": ["a", 1, null]}',
    b'{"timeMillis": -99999999999999999, "message": "x", "thrown": {"cause": {"cause": 4}}}',
    b"2026-11-21T06:47:23.468Z stdout P partial", b"2026-11-21T06:47:23.468Z stderr F",
    b"[pod/a/b]", b"> > > >", b"```", b"LogType:x", b"LogLength:-5", b"End of LogType:x",
    b"Container: container_1 on x", b"--", b"End of exception on server side>",
    b"java.lang.Exception: <Exception on server side:", b"Job a (00000000000000000000000000000000)"
    b" switched from state RUNNING to FAILED.", b"Completed checkpoint 99999999999999999999 for",
    b"Loading configuration property: a, ", b"Loading configuration property: , b",
    b" Rev:x, Version: 99.99.99",
)  # fmt: skip


def put_strange_bytes(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    for _ in range(drawn.randint(1, 6)):
        data = _insert(drawn, data, drawn.choice(_STRANGE))
    return data


def put_noise_lines(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    for _ in range(drawn.randint(1, 12)):
        lines.insert(drawn.randrange(len(lines) + 1), drawn.choice(_NOISE))
    return b"\n".join(lines)


def put_at_head(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return drawn.choice((*_STRANGE, *_NOISE)) + drawn.choice((b"", b"\n")) + data


def wrap(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    column = drawn.choice((1, 20, 80, 132))
    lines = (line[:4000] for line in data.split(b"\n"))
    return b"\n".join(
        line[at : at + column] for line in lines for at in range(0, max(len(line), 1), column)
    )[: 4 * MAX_BYTES]


def flatten(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    glue = drawn.choice((b"\\n", b" ", b"\t", b"|", b" | ", b"#012", b"<br>", b""))
    lines = data.split(b"\n")
    at = drawn.randrange(len(lines))
    until = at + drawn.choice((3, 50, 10_000))
    return b"\n".join([*lines[:at], glue.join(lines[at:until]), *lines[until:]])


def carry(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Add the prefix or envelope of a carrier to all, most, half, or a few of the lines."""
    prefix = drawn.choice(_CARRIERS)
    share = drawn.choice((1.0, 0.95, 0.5, 0.05))
    lines = data.split(b"\n")
    return b"\n".join(
        prefix(number, line) if drawn.random() < share else line
        for number, line in enumerate(lines)
    )


def _docker(number: int, line: bytes) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    return json.dumps({"log": text + "\n" * (number % 7 > 0), "stream": "stdout"}).encode()


def _ecs(number: int, line: bytes) -> bytes:
    text = line.decode("utf-8", "replace")
    return json.dumps(
        {"@timestamp": f"2026-11-21T06:00:{number % 60:02}Z", "log.level": "ERROR", "message": text}
    ).encode()


_CARRIERS: tuple[Callable[[int, bytes], bytes], ...] = (
    lambda number, line: b"2026-11-21T06:47:23.%09dZ stdout F " % number + line,
    lambda number, line: b"2026-11-21T06:47:23.%09dZ stdout P " % number + line,
    lambda number, line: b"[pod/a-%d/main] " % (number % 400) + line,
    lambda number, line: b"logs/tm.log:%d:" % number + line,
    lambda number, line: b"%d:" % number + line,
    lambda number, line: b"tm-%d | " % (number % 3) + line,
    lambda number, line: b"Nov 21 06:00:00 node flink[1]: " + line,
    lambda number, line: b"> " * (number % 5) + line,
    lambda number, line: b"2026-11-21T05:00:00.%09dZ " % number + line,
    _docker,
    _ecs,
)


def export(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """The log in the form that a log store exports: a document or a table of records."""
    texts = data.decode("utf-8", "replace").split("\n")
    stamped = [(f"2026-11-21T06:{i // 60 % 60:02}:{i % 60:02}Z", s) for i, s in enumerate(texts)]
    if drawn.random() < 0.3:
        table = io.StringIO()
        rows = csv.writer(table, delimiter=drawn.choice(",;\t"))
        rows.writerow(drawn.choice((("@timestamp", "@message"), ("Time", "Line"))))
        rows.writerows(stamped)
        return table.getvalue().encode()
    records: object = [{"timestamp": at, "message": text} for at, text in stamped]
    wrapped = drawn.choice(
        (
            records,
            {"events": records},
            {"hits": {"hits": [{"_source": {"@timestamp": a, "message": m}} for a, m in stamped]}},
            {"data": {"result": [{"stream": {"pod": "a"}, "values": [list(s) for s in stamped]}]}},
        )
    )
    return json.dumps(wrapped, indent=drawn.choice((None, 1))).encode()


def encode_again(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    encoding = drawn.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-7"))
    text = data.decode("utf-8", "replace")
    return text.encode(encoding, "replace")


def cut_tiny(drawn: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: drawn.choice((0, 1, 2, 15, 16, 17, 40))]


MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes,
    cut_out,
    cut_ends,
    splice,
    interleave,
    repeat_lines,
    shuffle_lines,
    change_line_ends,
    put_strange_bytes,
    put_noise_lines,
    put_at_head,
    wrap,
    flatten,
    carry,
    carry,
    export,
    encode_again,
    cut_tiny,
)


def _packed(drawn: random.Random, data: bytes) -> bytes:
    pack = drawn.choice((_gzip, bz2.compress, lzma.compress, _tar, _zip, _tar_gz))
    packed = pack(data)
    if drawn.random() < 0.3:
        packed += drawn.choice((pack(data[:500]), b"\0" * 100, b"garbage", packed[:10]))
    if drawn.random() < 0.4:
        packed = packed[: drawn.randrange(len(packed) + 1)]
    if drawn.random() < 0.3:
        packed = flip_bytes(drawn, packed, ())
    return packed


_NAMES = (
    "logs/jm.log",
    "../../etc/passwd",
    "/abs.log",
    "a\nb.log",
    "tm.log.gz",
    "x/" * 90 + "y",
    "é",
)


def _tar(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, name in enumerate(_NAMES):
            member = tarfile.TarInfo(name)
            member.size = len(data) // (number + 1)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/shadow"
        archive.addfile(link)
    return out.getvalue()


def _gzip(data: bytes) -> bytes:
    """Compress without a timestamp, so that a seed always produces the same bytes."""
    return gzip.compress(data, mtime=0)


def _tar_gz(data: bytes) -> bytes:
    return _gzip(_tar(data))


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(_NAMES):
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data[: len(data) // (number + 1)])
    return out.getvalue()
