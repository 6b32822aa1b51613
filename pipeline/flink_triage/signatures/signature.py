"""Defines signatures as frozen values, which are validated when they are loaded.

Each signature file (``docs/signature-format.md``) is loaded as one ``Signature``. This module does
not read files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from flink_triage.model import Action, Match, Process, Risk, Role, Scope, Severity, TriedFix

TextScope = Literal["throwable", "root-cause", "event", "message", "frame"]
MatchMode = Literal["any", "all", "sequence"]
Reach = Literal["job", "cluster"]
Purpose = Literal["cure", "prevent"]
Precedence = Literal["normal", "fallback"]
Meaning = Literal["job-unknown", "jobmanager-lost", "system-exit", "taskmanager-stopped"]

# Captures that do not require a regex: the failed process, and the matching item of ``frame``.
PLACES = frozenset({"process", "frame"})

# A literal of this length rarely occurs in an unrelated line.
_RARE_CHARS = 14
# Long literals that nevertheless occur in most log lines.
_COMMON = frozenset({"org.apache.flink", "org.apache.flink.", "org.apache.flink.runtime"})

# Text of this length identifies one failure, regardless of its class; "Could not allocate" is too
# short.
_DISTINCTIVE_CHARS = 20

# The points that each type of condition adds to the specificity; text counts by its length.
_TYPE_POINTS = 40
_FRAME_POINTS = 30
_LOGGER_POINTS = 10
_REGEX_POINTS = 20


@dataclass(frozen=True, slots=True)
class Alternative:
    """Conditions on one event, all of which must be met; empty tuples and ``None`` are ignored.

    For ``throwables``, ``root_causes``, ``frames``, ``loggers``, and ``levels``, one item must
    match; all ``literals`` must occur in the text selected by ``scope``. ``frame_origin`` is the
    required result of ``failing_origin``. If the alternative is a form of an ``error``, ``error``
    describes it (``aws: service s3, status 5xx or 429``).
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
    frame_origin: Literal["user", "connector"] | None = None
    error: str | None = None

    @property
    def anchors(self) -> tuple[str, ...]:
        """Texts of which every matching event contains at least one; empty without literals.

        A scanner searches for the longest literal, which is usually the rarest, or for the simple
        names of the required classes if the literals are short or common. An event may match
        without any of these texts if a user's text has typos, or if the class of its throwable is
        hidden (``hides_class``).
        """
        if not self.literals:
            return ()
        longest = max(self.literals, key=lambda literal: (literal not in _COMMON, len(literal)))
        classes = self.root_causes or self.throwables
        is_common = len(longest) < _RARE_CHARS or longest in _COMMON
        if classes and (is_common or not self.is_distinctive):
            return tuple(sorted({name.rpartition(".")[2] for name in classes}))
        return (longest,)

    @property
    def is_distinctive(self) -> bool:
        """Whether the literals are distinctive without the class of the throwable."""
        return sum(len(literal) for literal in self.literals) >= _DISTINCTIVE_CHARS

    @property
    def specificity(self) -> int:
        """A value for sorting, which is higher with more conditions and longer literals.

        It ignores levels and processes, and is 0 with ``frame_origin``.
        """
        if self.frame_origin is not None:
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
    """Conditions of a config change: Flink versions, other options' values, and captures.

    ``flink`` is a range such as ``>=1.15,<2.0``. A value of ``options`` is the required value or a
    regex for it; a value of ``captures`` is a regex that is searched in the capture.
    """

    flink: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    captures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComputedValue:
    """A new value: ``factor`` times the larger of the effective value and the value in the log.

    ``stated`` contains sums, differences, and products of captures, such as
    ``(total + missing) * segment_bytes``. The suffix of a name (``_bytes``, ``_ms``, or
    ``_seconds``) specifies its unit. The bounds limit the result, but never to less than the value
    in the log.
    """

    factor: float
    at_least: str | None = None
    at_most: str | None = None
    stated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSpec:
    """A config option to change, under its key in the newest Flink line that has the option.

    The user must choose a ``value`` in angle brackets (``<unique per deployment>``). A change that
    only prevents the next failure, or mitigates this one, is not part of the configuration patch.
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
    """The remediation before it is resolved for a Flink version and an effective configuration.

    ``trace_step`` refers to the cause in the stack trace, and precedes ``steps``. If the trace of a
    wrapper has no cause, its ``steps`` are reported as missing evidence, without ``trace_step``.
    ``missing_class`` is the capture with the name of a class that was not found.
    """

    summary: str
    steps: tuple[str, ...] = ()
    config: tuple[ConfigSpec, ...] = ()
    risk: Risk = "restart"
    verify: str | None = None
    commonly_tried: tuple[TriedFix, ...] = ()
    references: tuple[str, ...] = ()
    trace_step: str | None = None
    missing_class: str | None = None

    @property
    def all_steps(self) -> tuple[str, ...]:
        return self.steps if self.trace_step is None else (self.trace_step, *self.steps)


@dataclass(frozen=True, slots=True)
class Versions:
    """The affected and fixed versions of Flink (or a connector), in words."""

    affected: str | None = None
    fixed: str | None = None


@dataclass(frozen=True, slots=True)
class Examples:
    """Complete log events that must match, and near misses that must not match."""

    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """One known failure.

    ``mode`` combines the ``alternatives``: any or all of them must match one event, or they must
    match one after the other in an episode. ``vetoes`` must not match the event. ``count`` and
    ``within_seconds`` require repetition in an episode (``episode_match``). ``reach`` is
    ``cluster`` if jobs share the faulty resource, such as a host, its disk, the storage, or the
    leader. ``meaning`` is the name of the situation for context rules (``diagnosis/context``). A
    signature with ``precedence`` ``fallback`` does not match an event that another signature
    explains (``explains_event``).
    ``lines`` maps each field (``match.any[0].regex``) to its line in ``path``.
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
    precedence: Precedence = "normal"
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
        """Whether it may match any exception of some code; such matches are listed last."""
        return any(alternative.frame_origin is not None for alternative in self.alternatives)

    @property
    def is_answer(self) -> bool:
        """Whether it may be the diagnosis, and does not merely report or accompany a failure."""
        return self.role in ("trigger", "contributing", "symptom")

    @property
    def explains_event(self) -> bool:
        """Whether fallbacks do not apply to an event that it matches."""
        return self.is_answer and not self.is_unspecific and not self.is_episodic

    @property
    def is_unspecific(self) -> bool:
        """Whether it may match exceptions of any code, including exceptions that were handled."""
        return self.is_generic or self.precedence == "fallback"

    @property
    def is_order(self) -> bool:
        """Whether it is an orderly stop, such as a requested shutdown: a trigger that is minor."""
        return self.role == "trigger" and self.severity == "minor"

    @property
    def asked_places(self) -> frozenset[str]:
        """The captures ``process`` and ``frame``, if the config changes depend on them."""
        whens = [change.when for change in self.remediation.config if change.when]
        return frozenset(name for when in whens for name in when.captures) & PLACES

    @property
    def is_episodic(self) -> bool:
        """Whether it requires several matches in an episode, which ``episode_match`` checks."""
        return self.mode == "sequence" or self.count > 1

    @property
    def specificity(self) -> int:
        """The specificity of the least specific alternative; with ``all``, the sum of all."""
        values = [alternative.specificity for alternative in self.alternatives]
        return sum(values) if self.mode == "all" else min(values)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A signature that a team ignores, with the reason.

    ``expires`` is the last day on which it is ignored; ``None`` for an unlimited time.
    """

    signature: str
    reason: str
    expires: date | None = None


def without_fallbacks(
    matches: Sequence[Match], signatures: Mapping[str, Signature]
) -> Sequence[Match]:
    """The matches of one event, without fallbacks if another signature explains the event."""
    if not any(signatures[match.signature].explains_event for match in matches):
        return matches
    return [m for m in matches if signatures[m.signature].precedence == "normal"]
