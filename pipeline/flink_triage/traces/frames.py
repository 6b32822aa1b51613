"""Parses an ``at ...`` line into a ``Frame`` with its origin."""

from __future__ import annotations

import re
from functools import lru_cache

from flink_triage.logs.text.trace_lines import FRAME
from flink_triage.model import Frame, Origin
from flink_triage.traces.packages import ORIGINS

NATIVE_METHOD = "Native Method"
# The file name, and in the JVM also the class name, of Python code that was passed as a string.
PYTHON_STRING = "<string>"

# Packages that are not listed are user code, and so are Flink's examples.
JDK = (*ORIGINS["jdk"], PYTHON_STRING)
CONNECTOR, LIBRARY, FLINK_EXAMPLES = (ORIGINS[o] for o in ("connector", "library", "user"))
_FLINK = ORIGINS["flink"]

# HotSpot throws these exceptions without message and stack trace once the code that throws them has
# been compiled (-XX:+OmitStackTraceInFastThrow).
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

    ``file`` is ``Native Method`` for native methods, and ``None`` if the source is unknown.
    """
    return _known_frame(line) if len(line) < _SHORT_CHARS else _frame(line)


# Maximum length of a cached line. All traces of a log consist of the same few thousand frames.
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
    """The origin of a class, determined by its package.

    A shaded class has the origin of the original class, except that ``user`` and ``flink`` become
    ``library``. A class in an unlisted package is ``user``; a generated class is ``flink``. A
    native method is ``native`` in a library (such as RocksDB's JNI code) and ``jdk`` in the JDK.
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
    """The name without ``app//``, ``java.base/``, ``loader/module@1/``; ``$$Lambda$1/0x2`` is kept.

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
