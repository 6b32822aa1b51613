"""One signature as the rest of the pipeline sees it: frozen values, checked when they were loaded.

A signature file (``docs/signature-format.md``) becomes one ``Signature``; nothing here reads files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from flink_triage.model import Action, Process, Risk, Role, Scope, Severity, TriedFix

TextScope = Literal["throwable", "root-cause", "event", "message", "frame"]
MatchMode = Literal["any", "all", "sequence"]
Reach = Literal["job", "cluster"]
Purpose = Literal["cure", "prevent"]
Meaning = Literal["job-unknown", "jobmanager-lost", "system-exit", "taskmanager-stopped"]

# Captures that no regex makes: the process that failed, and the item of ``frame`` that held.
PLACES = frozenset({"process", "frame"})

# A literal this long is seldom in a line that has nothing to do with it.
_RARE_CHARS = 14
# Long, and yet in most lines of a log.
_COMMON = frozenset({"org.apache.flink", "org.apache.flink.", "org.apache.flink.runtime"})

# So much text is one failure's whatever its class; "Could not allocate" is not.
_TELLING_CHARS = 20

# Points that each kind of condition adds to a specificity; text counts by its length.
_TYPE_POINTS = 40
_FRAME_POINTS = 30
_LOGGER_POINTS = 10
_REGEX_POINTS = 20


@dataclass(frozen=True, slots=True)
class Alternative:
    """Conditions on one event that must all hold; an empty tuple or ``None`` demands nothing.

    Of ``throwables``, ``root_causes``, ``frames``, ``loggers`` and ``levels`` one item must hold;
    of ``literals`` every one must occur in the text that ``scope`` names.  ``is_user_frame`` is
    ``frame-origin: user``, ``error`` what an ``error`` asks, where it
    is one form of it (``aws: service s3, status 5xx or 429``).
    """

    scope: TextScope = "event"
    throwables: tuple[str, ...] = ()
    root_causes: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    regex: str | None = None
    frames: tuple[str, ...] = ()
    loggers: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    process: Process | None = None
    is_user_frame: bool = False
    error: str | None = None

    @property
    def anchors(self) -> tuple[str, ...]:
        """Texts of which one at least is in every event that this alternative can match.

        What a scanner must look for: the longest literal, as the rarest, or the simple names of the
        classes asked for, where literals do not count without them or are common words.
        """
        if not self.literals:
            return ()
        longest = max(self.literals, key=lambda literal: (literal not in _COMMON, len(literal)))
        classes = self.root_causes or self.throwables
        is_common = len(longest) < _RARE_CHARS or longest in _COMMON
        if classes and (is_common or not self.is_telling):
            return tuple(sorted({name.rpartition(".")[2] for name in classes}))
        return (longest,)

    @property
    def is_telling(self) -> bool:
        """Whether the literals say enough without the class of the throwable."""
        return sum(len(literal) for literal in self.literals) >= _TELLING_CHARS

    @property
    def specificity(self) -> int:
        """How much an event must have in common with this alternative; only the order counts."""
        if self.is_user_frame:
            return 0
        return (
            sum(len(literal) for literal in self.literals)
            + _TYPE_POINTS * bool(self.throwables or self.root_causes)
            + _FRAME_POINTS * bool(self.frames)
            + _LOGGER_POINTS * bool(self.loggers)
            + _REGEX_POINTS * bool(self.regex)
        )


@dataclass(frozen=True, slots=True)
class When:
    """Where a config change applies: Flink lines, values of other options, captures (regexes)."""

    flink: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    captures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComputedValue:
    """A new value: ``factor`` times the larger of the value in effect and what the log states.

    ``stated`` are sums and products of captures (``(total + missing) * segment_bytes``); a name
    that ends in ``_bytes``, ``_ms`` or ``_seconds`` gives the unit.  The two bounds limit the
    result, but never to less than the log states.
    """

    factor: float
    at_least: str | None = None
    at_most: str | None = None
    stated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSpec:
    """One option to change, under the key of the newest Flink line that has it.

    ``value`` in angle brackets (``<unique per deployment>``) is for the reader to choose.  What
    only prevents the next failure, or eases this one, is no part of the block to paste.
    """

    key: str
    value: str | ComputedValue
    action: Action = "set"
    reason: str = ""
    scope: Scope = "cluster"
    when: When | None = None
    purpose: Purpose = "cure"


@dataclass(frozen=True, slots=True)
class RemediationSpec:
    """What to do, before it meets a Flink version and an effective configuration.

    ``trace_step`` reads the cause in the stack trace; it comes before ``steps``, and is left out if
    the trace has no cause.
    """

    summary: str
    steps: tuple[str, ...] = ()
    config: tuple[ConfigSpec, ...] = ()
    risk: Risk = "restart"
    verify: str | None = None
    commonly_tried: tuple[TriedFix, ...] = ()
    references: tuple[str, ...] = ()
    trace_step: str | None = None

    @property
    def all_steps(self) -> tuple[str, ...]:
        return self.steps if self.trace_step is None else (self.trace_step, *self.steps)


@dataclass(frozen=True, slots=True)
class Versions:
    """Flink (or connector) versions in words: those that have the fault, those that cured it."""

    affected: str | None = None
    fixed: str | None = None


@dataclass(frozen=True, slots=True)
class Examples:
    """Whole log events that must match, and near misses that must not."""

    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """One known failure.

    ``mode`` says how ``alternatives`` join: any or all of them on one event, or one after the
    other over an episode.  ``vetoes`` must not hold on the event that matched.  ``count`` and
    ``within_seconds`` ask for repetition inside an episode (``episode_match``).  ``reach`` is
    ``cluster`` where jobs share what is at fault: a host, its disk, the storage, the leader.
    ``meaning`` names the situation for context rules (``diagnosis/context``).
    ``lines`` gives the line of each field (``match.any[0].regex``) in ``path``.
    """

    id: str
    title: str
    severity: Severity
    role: Role
    mode: MatchMode
    alternatives: tuple[Alternative, ...]
    cause: str
    remediation: RemediationSpec
    vetoes: tuple[Alternative, ...] = ()
    count: int = 1
    within_seconds: float | None = None
    reach: Reach = "job"
    meaning: Meaning | None = None
    explains: tuple[str, ...] = ()
    versions: Versions = Versions()
    limits: str | None = None
    examples: Examples = Examples()
    path: str = field(default="", compare=False)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def references(self) -> tuple[str, ...]:
        return self.remediation.references

    @property
    def subsystem(self) -> str:
        return self.id.partition("/")[0]

    @property
    def is_generic(self) -> bool:
        """True when it may match without any literal; it then ranks below all that name a text."""
        return any(alternative.is_user_frame for alternative in self.alternatives)

    @property
    def is_answer(self) -> bool:
        """True when it may be the answer, rather than what reports or accompanies a failure."""
        return self.role in ("trigger", "contributing", "symptom")

    @property
    def is_order(self) -> bool:
        """True for an orderly stop: a minor trigger is what somebody asked for."""
        return self.role == "trigger" and self.severity == "minor"

    @property
    def asked_places(self) -> frozenset[str]:
        """Of ``process`` and ``frame``, those that decide what to change."""
        whens = [change.when for change in self.remediation.config if change.when]
        return frozenset(name for when in whens for name in when.captures) & PLACES

    @property
    def is_episodic(self) -> bool:
        """True when one match is not enough: ask ``episode_match``."""
        return self.mode == "sequence" or self.count > 1

    @property
    def specificity(self) -> int:
        """Of its weakest way to match."""
        values = [alternative.specificity for alternative in self.alternatives]
        return sum(values) if self.mode == "all" else min(values)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A signature that a team has decided not to hear of, why, and until which day (inclusive)."""

    signature: str
    reason: str
    expires: date | None = None
