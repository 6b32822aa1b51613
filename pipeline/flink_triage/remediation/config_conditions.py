"""Checks a config entry's ``when`` against the Flink version, the configuration, and the match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import regex

from flink_triage.remediation.option_table import OptionTable
from flink_triage.remediation.versions import (
    LAST_WITH_AKKA,
    NEWEST,
    flink_line,
    parse_range,
    parse_version,
    version_in,
)
from flink_triage.signatures.signature import When
from flink_triage.user_regex import problem_of_regex

_REGEX_TIMEOUT_SECONDS = 0.25
_PATTERN_SIGN = regex.compile(r"[.\])\w][*+?]|\||^\^|\$$|\\[a-z]")
_ANY, _NONE = {".+", ".*"}, {"", "(none)"}
# The parts of a regex around the value that it matches.
_AROUND_A_VALUE = regex.compile(r"^\^?(?:\(\?i\))?(?:\.\*)?|(?:\.\*)?\$?$")
_PLAIN_VALUE = regex.compile(r"[\w.:/-]+")
# Akka addresses, loggers, classes, and options; "org.apache.pekko" does not match.
_AKKA = regex.compile(r"(?<![\w.])akka(?:\.\w|://)|\.akka\.|\bAkkaRpc")


@dataclass(frozen=True, slots=True)
class Running:
    """The known properties of the cluster, and the captures of the match.

    If ``effective`` is empty, no configuration was read; it does not mean that all options have
    their default values. ``has_akka`` states whether the log contains names of Akka, and is used
    only if the version is unknown.
    """

    table: OptionTable
    flink_version: str | None
    effective: Mapping[str, str]
    captures: Mapping[str, str] = field(default_factory=dict)
    has_akka: bool = False

    @property
    def line(self) -> str | None:
        return flink_line(self.flink_version)

    @property
    def naming_line(self) -> str:
        """The line whose keys are printed: the running line, or else the newest possible one."""
        if self.line is not None:
            return self.line
        return LAST_WITH_AKKA if self.has_akka else NEWEST

    def default(self, key: str) -> str | None:
        """The default in the running line.

        For an unknown version, this is the default in the newest line, if all lines that have the
        option agree, or else ``None``.
        """
        if self.line is not None:
            return self.table.effective_default(key, self.line)
        defaults = {
            line: self.table.effective_default(key, line) for line in self.table.lines_of(key)
        }
        measured = {
            None if text is None else self.table.measure(key, line, text)
            for line, text in defaults.items()
        }
        return defaults.get(NEWEST) if len(measured) == 1 else None


def is_akka(text: str) -> bool:
    """Whether the text contains a name of Akka, which Flink 1.17 and earlier use."""
    return _AKKA.search(text) is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an entry applies, and descriptions of the conditions that could not be checked."""

    holds: bool
    unchecked: tuple[str, ...] = ()


def check(condition: When | None, running: Running) -> Verdict:
    """Check all parts of ``when``.

    If the Flink version, its patch release, or the configuration is unknown, conditions on it count
    as met and are reported. A condition on a missing capture is checked against the empty string.
    """
    if condition is None:
        return Verdict(True)
    unchecked: list[str] = []
    if condition.flink:
        numbers = parse_version(running.flink_version)
        if numbers is None:
            unchecked.append(f"only for Flink {_words(condition.flink)}")
        elif not version_in(condition.flink, numbers):
            return Verdict(False)
        elif _is_finer(condition.flink, len(numbers)):
            unchecked.append(f"only for Flink {_words(condition.flink)}")
    for name, pattern in condition.captures.items():
        if not _found(pattern, running.captures.get(name) or ""):
            return Verdict(False)
    for key, wanted in condition.options.items():
        answer = _option_is(key, wanted, running)
        if answer is False:
            return Verdict(False)
        if answer is None:
            unchecked.append(f"only if {key} {_value_words(wanted)}")
    return Verdict(True, tuple(unchecked))


def _value_words(wanted: str) -> str:
    """``is kubernetes or a.Factory`` for the regex ``(?i)kubernetes|.*a.Factory``."""
    if wanted in _ANY:
        return "is set"
    if wanted in _NONE:
        return "is not set"
    if not is_pattern(wanted):
        return f"is {wanted}"
    values = [_AROUND_A_VALUE.sub("", part) for part in wanted.split("|")]
    if all(map(_PLAIN_VALUE.fullmatch, values)):
        return f"is {' or '.join(values)}"
    return f'matches "{wanted}"'


def _words(flink: str) -> str:
    return " and ".join(part.strip() for part in flink.split(","))


def _is_finer(flink: str, known_numbers: int) -> bool:
    """Whether the range specifies a patch release, but the version (``1.19``) does not."""
    return any(len(bound) > known_numbers for _, bound in parse_range(flink))


def _found(pattern: str, text: str | None) -> bool:
    if text is None:
        return False
    try:
        return regex.search(pattern, text, timeout=_REGEX_TIMEOUT_SECONDS) is not None
    except (TimeoutError, regex.error):
        return False


def _option_is(key: str, wanted: str, running: Running) -> bool | None:
    """Whether the option or its default has the value; ``None`` if no configuration was read."""
    line = running.naming_line
    setting = running.table.find(running.effective, key, running.line)
    value = setting.value if setting else running.default(key)
    if setting is None and not running.effective:
        return None
    if value is None:
        return wanted in _NONE
    measured = running.table.measure(key, line, wanted)
    if value == wanted or (
        measured is not None and running.table.measure(key, line, value) == measured
    ):
        return True
    return is_pattern(wanted) and _found(f"^(?:{wanted})$", value)


def is_pattern(wanted: str) -> bool:
    """Whether ``wanted`` is not a literal value, but a regex for the whole value.

    Examples are ``.+`` (the option is set) and ``s3.*``.
    """
    if not _PATTERN_SIGN.search(wanted):
        return False
    return problem_of_regex(wanted) is None
