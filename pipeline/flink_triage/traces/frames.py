"""Parses the ``at ...`` lines of stack traces into frames with their origins."""

from __future__ import annotations

import re
from functools import lru_cache

from flink_triage.logs.text.trace_lines import FRAME
from flink_triage.model import Frame, Origin
from flink_triage.traces.packages import ORIGINS

NATIVE_METHOD = "Native Method"
# The file name of Python code that was passed as a string. If the JVM runs this code, it is also
# the class name in the JVM's stack traces.
PYTHON_STRING = "<string>"

# Classes in packages that are not listed are user code, except for generated classes. Flink's
# examples are also user code.
JDK = (*ORIGINS["jdk"], PYTHON_STRING)
CONNECTOR, LIBRARY, FLINK_EXAMPLES = (ORIGINS[o] for o in ("connector", "library", "user"))
_FLINK = ORIGINS["flink"]

# HotSpot may throw these exceptions without a message or stack trace after it has compiled the code
# that throws them (-XX:+OmitStackTraceInFastThrow).
OMITTED_STACKS = frozenset(
    {
        "java.lang.ArithmeticException",
        "java.lang.ArrayIndexOutOfBoundsException",
        "java.lang.ArrayStoreException",
        "java.lang.ClassCastException",
        "java.lang.NullPointerException",
    }
)

# Classes that Flink's planner generates and compiles with Janino: their names have a counter but no
# package, and they have no source file
# (org.apache.flink.table.planner.codegen.CodeGenUtils.newName).
GENERATED = re.compile(r"[A-Za-z_]\w{0,200}\$\d{1,9}(?:\$\w{1,200})*")
SHADED = re.compile(r"(?:^|\.)shaded\d{0,3}\.(?:[a-z]\w{0,40}\d\.(?=[a-z]\w*\.))?")


def parse_frame(line: str) -> Frame | None:
    """The stack frame on a line, or ``None``.

    The ``file`` of the frame is ``Native Method`` for native methods, and ``None`` if the source is
    unknown.
    """
    return _known_frame(line) if len(line) < _SHORT_CHARS else _frame(line)


# Longer lines are not cached. The traces of a log usually consist of a few thousand distinct
# frames.
_SHORT_CHARS = 400


@lru_cache(maxsize=32768)
def _known_frame(line: str) -> Frame | None:
    return _frame(line)


def _frame(line: str) -> Frame | None:
    match = FRAME.match(line)
    if match is None:
        return None
    class_name, _, method = _without_loader(match["name"]).rpartition(".")
    if not class_name:
        return None
    file, number = _source(match["source"])
    return Frame(
        class_name=class_name,
        method=method,
        file=file,
        line=number,
        jar=_jar(match["tail"]),
        origin=origin_of(class_name, file),
    )


def origin_of(class_name: str, file: str | None = None) -> Origin:
    """The origin of a class, determined by the prefix of its name.

    A shaded class has the origin of the original class, except that ``user`` and ``flink`` become
    ``library``. A class in an unlisted package is ``user``; a class that Flink's planner generated
    is ``flink``. A native method of a library, such as RocksDB's JNI code, is ``native``.
    """
    if class_name.startswith(JDK):
        return "jdk"
    shaded = SHADED.search(class_name)
    if shaded is not None:
        inner = origin_of(class_name[shaded.end() :], file)
        return "library" if inner in ("user", "flink") else inner
    if class_name.startswith(CONNECTOR):
        return "connector"
    if class_name.startswith(_FLINK):
        return "user" if class_name.startswith(FLINK_EXAMPLES) else "flink"
    if class_name.startswith(LIBRARY):
        return "native" if file == NATIVE_METHOD else "library"
    if "." not in class_name and file is None and GENERATED.fullmatch(class_name):
        return "flink"
    return "user"


def _without_loader(name: str) -> str:
    """The name without class loader and module, as in ``app//`` and ``java.base/``.

    The slash in ``$$Lambda$1/0x2`` is kept.

    Source: StackTraceElement.toString.
    """
    while "/" in name:
        head, _, tail = name.partition("/")
        if "$" in head or not tail:
            break
        name = tail
    return name


def _source(source: str) -> tuple[str | None, int | None]:
    text = source.strip()
    squeezed = text.replace(" ", "")
    if squeezed == "NativeMethod":
        return NATIVE_METHOD, None
    if squeezed in ("", "UnknownSource", "<unknown>", "<generated>", "<Unknown>"):
        return None, None
    file, colon, number = text.rpartition(":")
    if colon and number.isascii() and number.isdigit() and len(number) < 10:
        return (None if file in ("UnknownSource", "Unknown Source") else file or None), int(number)
    return text, None


def _jar(tail: str) -> str | None:
    start = tail.find("[")
    if start < 0:
        return None
    jar = tail[start + 1 :].partition("]")[0].rpartition(":")[0].strip()
    return None if jar in ("", "?", "na") else jar
