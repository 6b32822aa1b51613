"""Classifies individual lines of stack traces.

Each function for a line takes the line without its line end, ignores indentation and email quoting
(``> ``), and runs in linear time. The supported formats are those of
``Throwable.printStackTrace``, log4j2's ``%throwable`` and ``%xEx``, logback's ``%ex`` and ``%rEx``,
and Flink's ``SerializedThrowable``.
"""

from __future__ import annotations

import re

# The first line of a Python traceback.
TRACEBACK = "Traceback (most recent call last):"

# Every class name that `is_throwable_type` accepts, every "Suppressed:", "... n more", and
# "[CIRCULAR REFERENCE:" line, and the first line of a Python traceback contain one of these words.
TRACE_WORDS = (
    *("Exception", "Error", "Throwable", "Failure", "Fault", "ThreadDeath", "Interrupt", "Timeout"),
    *("Traceback", "Suppressed:", "CIRCULAR", "... "),
)

_MAX_ELISION_CHARS = 80

# Indentation, email quotes, and the escaped indentation of flattened stack traces.
_LEAD = r"[ \t\u00a0>]*"

# A class name with optional JVM prefixes: `app//`, `java.base/`, `java.base@17.0.1/`,
# `loader/mod@1/`. The character class includes "/" but not "(", so a name is scanned only once.
NAME = r"[\w$.<>/@+\-\[\]\u2026]{1,1024}"

# The source is File.java:12, File.scala, Native Method, Unknown Source, <generated>, <unknown>, or
# empty. Java source names never contain parentheses. Some web pages keep only the first character
# of "~[jar:version]".
FRAME = re.compile(
    rf"""
    ^{_LEAD}at[ \t]+
    (?P<name>{NAME})
    [ ]?\((?P<source>[^()\n]{{0,256}})\)
    (?P<tail>[ \t]*(?:~?\[[^\]\n]{{0,512}}\][ \t]*){{0,2}})(?:~[ \t]*)?$
    """,
    re.VERBOSE,
)

# The bounds limit the time for a 100 KB word. Anonymized logs may contain two consecutive dots.
_TYPE = r"[A-Za-z_$][\w$]{0,255}(?:\.{1,2}[\w$]{1,255}){0,30}"
_THREAD = r'(?:Exception\ in\ thread\ (?:"[^"\n]{0,512}"|\S{1,256})\ )?'

# Hadoop's RemoteException prints the class of the server's exception in parentheses.
HEADER = re.compile(
    rf"""
    ^{_LEAD}(?::[ ])?{_THREAD}
    (?P<type>{_TYPE})(?:\((?P<remote>{_TYPE})\)(?=:))?
    (?:[ \t]*$|:(?=[ \t]|$)|(?:(?<=Exception)|(?<=Error)):(?=[A-Za-z])|\uff1a|(?=\(message:))
    """,
    re.VERBOSE,
)
CAUSE = re.compile(rf"^{_LEAD}(?P<word>Caused?|Wrapped)[ ]by[:\uff1a][ \t]*", re.VERBOSE)
SUPPRESSED = re.compile(rf"^{_LEAD}Suppressed:(?=[ \t]|\[|$)[ \t]*", re.VERBOSE)
MORE = re.compile(
    rf"^{_LEAD}\.\.\.[ ](?P<count>\d{{1,9}})[ ]"
    r"(?:more|common[ ]frames[ ]omitted|(?:stack[ ]?)?frames?[ ](?:omitted|excluded|truncated))"
    r"[ \t]*$",
    re.VERBOSE,
)
CIRCULAR = re.compile(rf"^{_LEAD}\[CIRCULAR[ ]REFERENCE:", re.VERBOSE)
# Placeholders for omitted frames: "...", "[…]", "... omitted ...", "(snip)".
ELISION = re.compile(
    rf"""
    ^{_LEAD}(?:[/#-]{{1,3}}[ ]?)?[\[(<]?
    (?:
        (?:\.{{3,16}}|\u2026{{1,8}})
        (?:[ ]?(?:truncated|snip|omitted|more|skipped|\u7701\u7565))?
        [ ]?(?:\.{{3,16}}|\u2026{{1,8}})?
      | truncated | snip | omitted
    )
    [\])>]?(?:[ ]?-{{1,3}})?[ \t]*$
    """,
    re.VERBOSE,
)

_SUFFIXES = ("Exception", "Error", "Throwable", "Failure", "Fault")
# Other throwables (KeeperException$NoNode, java.lang.ThreadDeath) are recognized only if their name
# is fully qualified and its last segment contains one of these words.
_INFIX = re.compile(r"Exception|Error|Throwable|ThreadDeath|Interrupt|Timeout")


def is_throwable_type(name: str) -> bool:
    """Whether a class name is that of a throwable, based on its last segment.

    The last segment ends in "Exception", "Error", "Throwable", "Failure", or "Fault", or, in a
    package of at least two parts, contains a word such as "Exception", "Interrupt", or "Timeout".
    Simple class names are accepted (``RocksDBException``), but plain English words (``Error``,
    ``Exception``) only with a package.
    """
    package, _, last = name.rpartition(".")
    if not last:
        return False
    if last.endswith(_SUFFIXES):
        if package:
            return package[0].islower() or "$" in last or package[0].isupper()
        return last[0].isupper() and last not in _SUFFIXES
    return "." in package and package[0].islower() and _INFIX.search(last) is not None


def is_throwable_header(line: str) -> bool:
    """Whether a line is ``some.pkg.FooException[: message]``.

    The text ``Exception in thread "x" `` may precede it.
    """
    match = HEADER.match(line)
    return match is not None and is_throwable_type(match["type"])


def is_frame(line: str) -> bool:
    """Whether a line is ``at [loader/][module/]pkg.Class.method(Source) [~[jar:version]]``."""
    match = FRAME.match(line)
    return match is not None and "." in match["name"]


def is_cause(line: str) -> bool:
    """Whether a line is ``Caused by: ...`` or logback's ``Wrapped by: ...`` (root cause first)."""
    return CAUSE.match(line) is not None


def is_suppressed(line: str) -> bool:
    """Whether a line is ``Suppressed: ...``."""
    return SUPPRESSED.match(line) is not None


def is_more(line: str) -> bool:
    """Whether a line is ``... 12 more``, ``... 12 common frames omitted``, or similar."""
    return MORE.match(line) is not None


def is_circular(line: str) -> bool:
    """Whether a line is ``[CIRCULAR REFERENCE:some.Type: message]``, as printed by Java 8."""
    return CIRCULAR.match(line) is not None


def is_elision(line: str) -> bool:
    """Whether a line is ``...`` or similar, which is part of a trace only between trace lines."""
    return len(line) <= _MAX_ELISION_CHARS and ELISION.match(line) is not None


def continues_trace(line: str) -> bool:
    """Whether a line can only occur inside a stack trace, and not on its first line."""
    return (
        is_frame(line)
        or is_more(line)
        or is_cause(line)
        or is_suppressed(line)
        or is_circular(line)
    )
