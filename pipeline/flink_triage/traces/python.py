"""Parses a Python traceback into throwables with Python frames (PyFlink failures).

PyFlink's Java code throws ``RuntimeException: Error received from SDK harness for instruction 1:
Traceback (most recent call last): ...``. The Python error becomes the cause of this exception. If a
traceback precedes a Java exception, the Python error wraps the exception. The type of an error
without a module is prefixed (``python.ValueError``). Python prints the innermost call last, so the
frames are reversed to Java's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from flink_triage.logs.text.trace_lines import TRACEBACK, is_throwable_header
from flink_triage.model import Frame, Origin, Throwable
from flink_triage.traces.frames import PYTHON_STRING
from flink_triage.traces.lines import Line

_FILE = re.compile(r'File "(?P<file>[^"\n]{1,1024})", line (?P<line>\d{1,9})(?:, in (?P<name>.*))?')
_ERROR = re.compile(
    r"(?P<type>[A-Za-z_]\w{0,255}(?:\.[A-Za-z_]\w{0,255}){0,30})(?::[ ]?(?P<message>.*))?"
)
# PyFlink raises these errors for Java exceptions (pyflink/util/exceptions.py). Some versions print
# the Java class after the name. The Java frames are below it.
PYFLINK_ERRORS = "pyflink.util.exceptions."
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
# The root of installed Python modules. Flink ships PyFlink and its dependencies as zip files.
_MODULE_ROOT = re.compile(
    r".*?/(?:site-packages|dist-packages|lib/python\d(?:\.\d{1,2})?"
    r"|(?:pyflink|py4j|cloudpickle)[^/]{0,200}\.zip)/"
)


def read_traceback(
    lines: Sequence[Line], start: int, is_structural: Callable[[str], bool]
) -> tuple[tuple[Throwable, ...], int]:
    """The errors in the traceback at ``start``, outermost first, and the index of the next line.

    The traceback ends at a blank line after an error, unless a chained error follows, and before a
    line of a Java stack trace (``is_structural``).
    """
    errors: list[Throwable] = []
    frames: list[Frame] = []
    message: list[str] | None = None
    type_name = ""
    index = start + 1
    base = min((line.indent for line in lines[index : index + 200] if line.text), default=0)

    def close() -> None:
        nonlocal frames, message, type_name
        if message is not None or frames:
            text = "\n".join(message or ()).strip()
            errors.append(Throwable(type_name, text, tuple(reversed(frames)), relation="cause"))
        frames, message, type_name = [], None, ""

    while index < len(lines):
        line = lines[index]
        text = line.text
        if is_structural(text) or (message is not None and is_java_of_py4j(text)):
            break
        if text.startswith(_CHAINED) or TRACEBACK in text:
            close()
        elif (found := _FILE.match(text)) is not None:
            if message is not None:
                close()
            frames.append(_frame(found))
        elif message is not None:
            if not text and not _goes_on(lines, index):
                break
            message.append(text)
        elif line.indent <= base and (error := _ERROR.fullmatch(text)) is not None and frames:
            name = error["type"]
            type_name = name if "." in name else f"python.{name}"
            message = [error["message"] or ""]
        index += 1
    close()
    return tuple(reversed(errors)), index


def java_header(throwables: Sequence[Throwable]) -> str | None:
    """The first line of the Java exception that the outermost Python error represents.

    ``None`` if it does not represent a Java exception, or if the class of the exception is unknown.
    """
    error = throwables[0] if throwables else None
    if error is None or not error.type.startswith(PYFLINK_ERRORS):
        return None
    if is_throwable_header(error.message):
        return error.message
    name = error.type.removeprefix(PYFLINK_ERRORS)
    if name == "JavaException":
        return None
    package = "api" if name == "TableException" else "catalog.exceptions"
    return f"org.apache.flink.table.{package}.{name}: {error.message}"


def _goes_on(lines: Sequence[Line], index: int) -> bool:
    """Whether the Python traceback continues after a blank line, as between chained errors."""
    for line in lines[index + 1 : index + 4]:
        if line.text.startswith(_CHAINED) or TRACEBACK in line.text:
            return True
    return False


def is_java_of_py4j(text: str) -> bool:
    """Whether this is the Java exception that Py4J prints after a colon, below the Python error."""
    return text.startswith(": ") and is_throwable_header(text)


def _frame(match: re.Match[str]) -> Frame:
    path = match["file"]
    module, origin = _module(path)
    return Frame(
        class_name=module,
        method=(match["name"] or "<module>").strip(),
        file=path.rpartition("/")[2],
        line=int(match["line"]),
        origin=origin,
    )


def _module(path: str) -> tuple[str, Origin]:
    if path == PYTHON_STRING:
        return path, "jdk"
    if path.startswith("<frozen "):
        return path.strip("<>").removeprefix("frozen "), "jdk"
    root = _MODULE_ROOT.match(path)
    inner = path[root.end() :] if root is not None else path.rpartition("/")[2]
    while (deeper := _MODULE_ROOT.match("/" + inner)) is not None:
        inner = ("/" + inner)[deeper.end() :]
    module = inner.removesuffix(".py").replace("/", ".") or path
    # Cython prints paths relative to the package root.
    if root is None and path.startswith(("apache_beam/", "pyflink/")):
        module = path.removesuffix(".pyx").removesuffix(".py").replace("/", ".")
        return module, "flink" if path.startswith("pyflink/") else "library"
    if root is None:
        return module, "user"
    if module.startswith("pyflink."):
        return module, "flink"
    is_package = any(place in path for place in ("site-packages", "dist-packages", ".zip/"))
    return module, "library" if is_package else "jdk"
