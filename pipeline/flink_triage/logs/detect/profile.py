"""Detects the profile of a file from its head, and partly from its name.

The profile contains the compression, encoding, carrier, layout, process, host, and Flink version.
Content takes precedence over names: a TaskManager log is identified by its banner, and by its file
name only if it has no banner.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from flink_triage.logs.detect.documents import DOCUMENT, is_document
from flink_triage.logs.detect.process import host_of, process_of, version_of
from flink_triage.logs.formats.carriers import carriers_named, peel_line
from flink_triage.logs.formats.detect_carriers import detect_carriers
from flink_triage.logs.formats.log_store_exports import MAX_EXPORT_BYTES, export_kind, read_export
from flink_triage.logs.inputs.compression import missing_package, open_decompressed
from flink_triage.logs.inputs.files import InputFile, open_binary
from flink_triage.logs.layouts.custom_layouts import OWN_LAYOUT, OwnLayouts
from flink_triage.logs.layouts.header_shape import JSON, Shape, shape_of, timestamp_columns
from flink_triage.logs.layouts.headers import HeaderKind
from flink_triage.logs.layouts.json_lines import begins_with_its_time, kind_of_line
from flink_triage.logs.text.decode import clean
from flink_triage.logs.text.trace_lines import continues_trace, is_throwable_header
from flink_triage.model import FileProfile, Process
from flink_triage.settings import Settings

PROBE_BYTES = 256 * 1024
_PROBE_LINES = 2000
# The number of leading lines that identify a file if the rest of its head has the same shape.
_SAMPLE_LINES = 400
# A file is read by its header shape only if at least this share of its head is part of an event.
_SHAPED_CONFIDENCE = 0.8
# A document may quote log lines, but fewer than this share.
_MIN_OF_LOG = 0.1

_BINARY_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "zip archive"),
    (b"7z\xbc\xaf", "7z archive"),
    (b"Rar!", "rar archive"),
    (b"%PDF-", "PDF document"),
    (b"\x7fELF", "binary program"),
    (b"\xca\xfe\xba\xbe", "Java class file"),
    (b"JAVA PROFILE", "heap dump"),
    (b"SQLite format 3", "SQLite database"),
    (b"PAR1", "Parquet file"),
    (b"\x89PNG", "image"),
    (b"FLR\x00", "Java Flight Recorder file"),
)
_CONTROL = bytes((*range(1, 7), *range(14, 27), 28, 29))
# A result of flink-triage stored next to the logs: the log lines that it quotes are not events.
_OWN_RESULT = re.compile(
    rb"\{\s*\"(?:tool\": \{\s*\"name\": \"flink-triage\"|schema_version\": \d+, \"run_id\":)"
)


@dataclass(frozen=True, slots=True)
class _Head:
    data: bytes
    compression: str
    problem: str | None


def probe(file: InputFile, settings: Settings, raw: BinaryIO | None = None) -> FileProfile:
    """The profile of ``file``, based on its first 256 KiB after decompression.

    A file that cannot be read gets a ``problem``; ``OSError`` is not raised. If the file is already
    open, pass it as ``raw``, positioned at its start; it is left open.
    """
    try:
        if raw is not None:
            head = _read_head(raw, settings)
        else:
            with open_binary(file.path) as raw:
                head = _read_head(raw, settings)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return FileProfile(file.path, file.size_bytes, problem=reason)
    profiled = partial(FileProfile, file.path, file.size_bytes, compression=head.compression)
    if head.problem and not head.data:
        return profiled(problem=head.problem)
    encoding = encoding_of(head.data, settings.reading.encoding)
    problem = _binary_problem(head.data, encoding)
    if problem:
        return profiled(problem=problem)
    kind = _export_kind_of(head.data, encoding, file.size_bytes)
    if kind is None:
        lines = _head_lines(head.data, encoding)
    else:
        records = read_export(head.data, kind, encoding)
        lines = [clean(record.text) for record in records[:_PROBE_LINES]]
    detected = _by_sample(lines, file.path) or _by_all(lines, file.path)
    carrier, layout = detected.carrier, detected.layout
    confidence, shape = detected.confidence, detected.shape
    own = _share_of_own(detected.texts, settings)
    if own > 0:
        layout, confidence, shape = OWN_LAYOUT, max(own, confidence), None
    if confidence < _MIN_OF_LOG and is_document(detected.texts):
        layout, shape = DOCUMENT, None
    is_plain = carrier == "none" and encoding == "utf-8" and kind is None
    is_plain = is_plain and not head.data.startswith(codecs.BOM_UTF8) and b"\x1b[" not in head.data
    is_shaped = shape is not None and is_plain
    return profiled(
        encoding=encoding,
        carrier=carrier if kind is None else f"{kind}+{carrier}".removesuffix("+none"),
        layout=shape.name if shape is not None and is_shaped else layout,
        layout_confidence=confidence,
        is_splittable=is_shaped and head.compression == "none" and file.is_seekable,
        process=detected.process,
        host=None if settings.reading.redacts_personal else file.host or host_of(file.path),
        flink_version=detected.flink_version,
    )


@dataclass(frozen=True, slots=True)
class _Detected:
    """The result of reading the head; ``texts`` are its lines without carrier prefixes."""

    carrier: str
    texts: Sequence[str]
    layout: str
    confidence: float
    shape: Shape | None
    process: Process | None
    flink_version: str | None


def _by_all(lines: Sequence[str], path: str) -> _Detected:
    carrier = detect_carriers(lines)
    peels = carriers_named(carrier)
    texts = [peel_line(peels, line).text for line in lines] if peels else lines
    kinds = [kind_of_line(text) for text in texts]
    text = "\n".join(texts)
    process = process_of(text, kinds, path)
    return _Detected(carrier, texts, *_layout_of(texts, kinds), process, version_of(text))


def _by_sample(lines: Sequence[str], path: str) -> _Detected | None:
    """The result of parsing only the first lines; ``None`` if the others must be parsed as well."""
    sample, others = lines[:_SAMPLE_LINES], lines[_SAMPLE_LINES:]
    if len(others) < len(sample) or detect_carriers(sample) != "none":
        return None
    kinds = [kind_of_line(line) for line in sample]
    layout, confidence, shape = _layout_of(sample, kinds)
    if shape is None:
        return None
    explained = total = 0
    for line in others:
        if not line or line.isspace():
            continue
        total += 1
        if shape.is_header_text(line) or _is_inside(line):
            explained += 1
        elif kind_of_line(line) is not None:
            return None
    text = "\n".join(lines)
    process = process_of(text, kinds, path)
    if process is None or explained < _SHAPED_CONFIDENCE * total:
        return None
    sampled = sum(1 for line in sample if line.strip())
    confidence = (confidence * sampled + explained) / (sampled + total)
    return _Detected("none", lines, layout, confidence, shape, process, version_of(text))


def _is_inside(line: str) -> bool:
    """Whether a line appears to continue an event."""
    return line[0] in "\t " or continues_trace(line) or is_throwable_header(line)


def _read_head(raw: BinaryIO, settings: Settings) -> _Head:
    stream = open_decompressed(raw, settings.max_file_bytes)
    data = stream.read(PROBE_BYTES)
    package = missing_package(stream.compression)
    problem = f"{stream.compression}: install {package} to read it" if package else stream.problem
    return _Head(data, stream.compression, problem)


def encoding_of(head: bytes, stated: str | None = None) -> str:
    """The encoding detected from byte order marks and NUL bytes, or else ``stated`` or ``utf-8``.

    ``stated`` is the encoding that the user specified. It is not used for non-ASCII text that is
    valid UTF-8, because text in a legacy encoding is rarely valid UTF-8.
    """
    if head.startswith(codecs.BOM_UTF32_LE):
        return "utf-32-le"
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    sample = head[:4096]
    if len(sample) >= 32:
        even, odd = sample[0::2], sample[1::2]
        if odd.count(0) * 10 > len(odd) * 7 and even.count(0) * 10 < len(even):
            return "utf-16-le"
        if even.count(0) * 10 > len(even) * 7 and odd.count(0) * 10 < len(odd):
            return "utf-16-be"
    if stated is None or head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    return "utf-8" if not head.isascii() and _is_utf8(head) else stated


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _binary_problem(head: bytes, encoding: str) -> str | None:
    for magic, name in _BINARY_MAGIC:
        if head.startswith(magic):
            return f"binary: {name}"
    if _OWN_RESULT.match(head):
        return "not a log: a result of flink-triage"
    if head[257:262] == b"ustar":
        return "binary: tar archive"
    if encoding != "utf-8":
        return None
    # A log may contain runs of NUL bytes after a crash. A binary file also contains other control
    # bytes.
    sample = head[: 64 * 1024]
    control = len(sample) - len(sample.translate(None, _CONTROL))
    if control * 50 > len(sample):
        return "binary: too many control bytes for text"
    if sample and sample.count(0) * 10 > len(sample) * 3 and b"\n" not in sample:
        return "binary: many NUL bytes and no newline"
    return None


def _export_kind_of(head: bytes, encoding: str, size_bytes: int) -> str | None:
    # An exported document is kept in memory, so a larger one is read line by line.
    if size_bytes > MAX_EXPORT_BYTES:
        return None
    return export_kind(head.decode(encoding, errors="replace"))


def _head_lines(head: bytes, encoding: str) -> list[str]:
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    lines = text.split("\n")
    if len(lines) > 1 and len(head) >= PROBE_BYTES:
        lines.pop()
    return [clean(line) for line in lines[:_PROBE_LINES]]


def _layout_of(
    lines: Sequence[str], kinds: Sequence[HeaderKind | None]
) -> tuple[str, float, Shape | None]:
    """The layout name, its confidence, and the header shape if the file can be read in blocks."""
    names: Counter[str] = Counter()
    dated: list[str] = []
    starts: list[str] = []
    others: list[str] = []
    explained = total = undated = 0
    for line, kind in zip(lines, kinds, strict=True):
        if not line.strip():
            continue
        total += 1
        if kind is None:
            explained += _is_inside(line)
            others.append(line)
            continue
        explained += 1
        names[kind.layout] += 1
        # A TaskManager may log the undated output of its start script inside a dated event.
        start = timestamp_columns(line)
        if start is not None:
            dated.append(line)
            starts.append(start)
        else:
            others.append(line)
            undated += 1
    if not names:
        return "none", 0.0, None
    layout = names.most_common(1)[0][0]
    confidence = explained / total
    is_mixed = names[JSON] and (len(names) > 1 or undated)
    if is_mixed or confidence < _SHAPED_CONFIDENCE or layout in ("time-only", "level-first"):
        return layout, confidence, None
    if layout == JSON and not all(map(begins_with_its_time, (dated[0], dated[-1]))):
        return layout, confidence, None
    shape = shape_of(dated, starts, layout)
    if shape is None or undated > len(dated):
        return layout, confidence, None
    # Other lines with this shape must be rare, because they would be read as headers.
    strangers = sum(map(shape.is_header_text, others))
    return layout, confidence, shape if strangers * 100 <= len(dated) else None


def _share_of_own(lines: Sequence[str], settings: Settings) -> float:
    """The share of the first lines that match a user-defined layout."""
    sample = [line for line in lines[:400] if line.strip()]
    if not settings.reading.layouts or not sample:
        return 0.0
    own = OwnLayouts(settings.reading.layouts, settings.regex_timeout_seconds)
    return sum(1 for line in sample if own.parse(line, None) is not None) / len(sample)
