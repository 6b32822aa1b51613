"""Reports problems that make signatures unreliable, in addition to those that the loader reports.

The loader rejects invalid signatures. This module reports, for example, that a regex is slow on
adversarial input, requires the numbers of one version, or matches almost any text, or that examples
are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import regex

from flink_triage.signatures.event_text import MAX_REGEX_CHARS
from flink_triage.signatures.pack import SignaturePack, build_pack, is_in_any, read_pack
from flink_triage.signatures.samples import check_examples
from flink_triage.signatures.signature import PLACES, Alternative, ComputedValue, Signature
from flink_triage.signatures.stated_amounts import capture_names
from flink_triage.yaml_documents import Problem

# Returns ``path:line: field: reason`` lines, like ``remediation.check_pack``. The checker is a
# parameter because the signatures package must not import the remediation package.
ConfigChecker = Callable[[SignaturePack], Iterable[str]]

# The maximum length of the text that a regex searches.
_HOSTILE_CHARS = MAX_REGEX_CHARS
# Measured as CPU time, so that other load on the machine does not affect the result.
_SLOW_SECONDS = 0.25
_MIN_TITLE_CHARS = 12
_PRESENT_OR_NOT = frozenset({"^$", ".", ".+", ".*"})
# The words that `limits` must contain if one cause has several remedies.
_ONE_CAUSE = "one cause"
_DRAFT = regex.compile(r"\bTODO\b")
# Texts that no regex may match; a regex that matches one of them matches almost anything.
_INNOCENT_TEXTS = ("", " ", "x", "Starting Flink", "a.b.C: d", "java.lang.Exception: a b c 1 2 3")
# An unbounded repetition of a group that itself contains an unbounded repetition: (a+)*,
# (?:\w+\s?)+
_NESTED_QUANTIFIER = regex.compile(
    r"\((?:[^()\\\[]|\\.|\[[^\]]*\])*(?<!\\)[+*](?!\+)(?:[^()\\\[]|\\.|\[[^\]]*\])*\)(?:[+*](?!\+)|\{\d+,\})"
)
_STATUS = regex.compile(r"\(\?P<(?:status|state|code)>[^()]*\)")
_QUANTIFIER_OR_CLASS = regex.compile(
    r"\\[pP]\{[^}]*\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\{\d*,?\d*\}|\(\?P?<\w+>|\(\?P[=>]\w+\)"
)
# Each of these fillers has exposed a slow regex.
_FILLERS = ("a", "1", " ", ".", "/", "a.", "a b ", "1, ", "'a' ", "[", "(a) ", ": ", "\n", "é")


def lint(directories: Sequence[Path], check_config: ConfigChecker) -> tuple[str, ...]:
    """The problems as ``path:line: field: reason``, loading problems first.

    The directories after the first one extend or replace its signatures. If there are any, only
    their signatures are checked.
    """
    pack, problems = read_pack(directories)
    checked = directories[1:] or directories
    own = build_pack(s for s in pack.signatures.values() if is_in_any(s.path, checked))
    found = [problem for s in own.signatures.values() for problem in lint_signature(s)]
    found.extend(check_examples(own))
    found.sort(key=lambda problem: (problem.path, problem.line, problem.reason))
    return tuple(dict.fromkeys([*map(str, (*problems, *found)), *check_config(own)]))


def lint_signature(signature: Signature) -> tuple[Problem, ...]:
    """The problems of one signature that do not depend on other signatures."""
    found = [
        *_lint_draft(signature),
        *_lint_head(signature),
        *_lint_examples(signature),
        *_lint_remediation(signature),
    ]
    for group, alternatives in (
        (signature.mode, signature.alternatives),
        ("none", signature.vetoes),
    ):
        for index, alternative in enumerate(alternatives):
            place = f"match.{group}[{index}]"
            for key, reason in _lint_alternative(alternative):
                found.append((f"{place}.{key}", reason))
    return tuple(_problem(signature, field, reason) for field, reason in found)


def _lint_draft(signature: Signature) -> Iterator[tuple[str, str]]:
    """Report fields that still contain a ``TODO`` of ``signatures new``."""
    remediation = signature.remediation
    texts = {
        "title": signature.title,
        "cause": signature.cause,
        "limits": signature.limits or "",
        "remediation.summary": remediation.summary,
        "remediation.trace_step": remediation.trace_step or "",
        "remediation.verify": remediation.verify or "",
    }
    texts |= {f"remediation.steps[{i}]": step for i, step in enumerate(remediation.steps)}
    for field, text in texts.items():
        if _DRAFT.search(text):
            yield field, "still contains TODO: complete it, or remove the signature"


def _lint_head(signature: Signature) -> Iterator[tuple[str, str]]:
    if len(signature.title) < _MIN_TITLE_CHARS:
        yield "title", f'"{signature.title}" is shorter than {_MIN_TITLE_CHARS} characters'
    if signature.title.endswith("."):
        yield "title", "ends in a full stop; remove it"
    if signature.severity == "info" and signature.role in ("trigger", "loop-sustainer"):
        yield "severity", f"info means harmless, but a {signature.role} causes a failure"
    if signature.role == "benign" and signature.severity in ("critical", "major"):
        yield "severity", f"{signature.severity} is not a severity of a benign signature"
    if signature.role == "benign" and signature.explains:
        yield "explains", "a benign signature does not cause failures"
    if len(signature.cause.split()) < 8:
        yield "cause", "is too short for an explanation: fewer than 8 words"


def _lint_examples(signature: Signature) -> Iterator[tuple[str, str]]:
    if not signature.examples.match:
        yield "examples.match", "is missing: give at least one whole real event"
    if not signature.examples.no_match:
        yield "examples.no_match", "is missing: give at least one near miss"


def _lint_remediation(signature: Signature) -> Iterator[tuple[str, str]]:
    remediation = signature.remediation
    if signature.role == "trigger" and not (remediation.all_steps or remediation.config):
        yield "remediation", "has neither steps nor config"
    groups = _group_names(signature)
    if remediation.missing_class is not None and remediation.missing_class not in groups:
        name = remediation.missing_class
        yield "remediation.missing_class", f"no regex of this signature captures {name}"
    for index, change in enumerate(remediation.config):
        for name in change.when.captures if change.when else ():
            if name not in groups | PLACES:
                field = f"remediation.config[{index}].when.capture.{name}"
                yield field, f"no regex of this signature captures {name}"
        if isinstance(change.value, ComputedValue):
            for reason in _lint_stated(change.value, groups):
                yield f"remediation.config[{index}].value.stated", reason
    yield from _lint_one_cause(signature)


def _lint_stated(value: ComputedValue, groups: frozenset[str]) -> Iterator[str]:
    for expression in value.stated:
        try:
            missing = set(capture_names(expression)) - groups
        except ValueError as error:
            yield str(error)
        else:
            for name in sorted(missing):
                yield f"no regex of this signature captures {name}"


def _lint_one_cause(signature: Signature) -> Iterator[tuple[str, str]]:
    """Report a capture tested against several regexes: the signature describes several causes."""
    tested: dict[str, dict[str, str]] = {}
    for index, change in enumerate(signature.remediation.config):
        for name, pattern in (change.when.captures if change.when else {}).items():
            # The process and frame only locate the failure, and a test for presence has no literal.
            if name not in PLACES and pattern not in _PRESENT_OR_NOT:
                tested.setdefault(name, {}).setdefault(
                    pattern, f"remediation.config[{index}].when.capture.{name}"
                )
    for name, places in tested.items():
        if len(places) > 1 and _ONE_CAUSE not in (signature.limits or ""):
            literals = ", ".join(f'"{pattern}"' for pattern in places)
            yield (
                [*places.values()][1],
                f"{name} is tested against {literals}: split the signature by cause, "
                f'or state in limits why it is "{_ONE_CAUSE}"',
            )


def _group_names(signature: Signature) -> frozenset[str]:
    patterns = [a.regex for a in signature.alternatives if a.regex is not None]
    return frozenset(name for pattern in patterns for name in regex.compile(pattern).groupindex)


# --- one alternative ---------------------------------------------------------------------------


def _lint_alternative(alternative: Alternative) -> Iterator[tuple[str, str]]:
    for literal in alternative.literals:
        if "\n" in literal:
            yield "literal", "spans lines, so it does not match logs flattened to one line"
        if not any(character.isalpha() for character in literal):
            yield "literal", f'"{literal}" has no letter, so it occurs in many events'
        if literal != literal.strip():
            yield "literal", f'"{literal}" starts or ends with a space, which wrapped logs lose'
    if alternative.regex is not None:
        for reason in _lint_regex(alternative.regex, alternative.literals):
            yield "regex", reason


def _lint_regex(pattern: str, literals: Sequence[str]) -> Iterator[str]:
    compiled = regex.compile(pattern)
    if any(compiled.search(text) for text in _INNOCENT_TEXTS):
        yield "matches an unrelated text, so it matches too much"
    nested = _NESTED_QUANTIFIER.search(pattern)
    if nested is not None:
        yield f"repeats a repetition: {nested.group()}"
    for digits in _bare_digits(pattern):
        if not any(digits in literal for literal in literals):
            yield f"requires the digits {digits}, which are in no literal; use \\d or a literal"
    slow = slowest_seconds(pattern, literals)
    if slow > _SLOW_SECONDS:
        yield f"takes {slow:.2f} s on a hostile text of {_HOSTILE_CHARS // 1024} KiB"


def _bare_digits(pattern: str) -> list[str]:
    """The literal digits outside of escapes, character classes, repetitions, and group names.

    Digits in a name (``S3``) or in groups named status, state, or code are excluded, because they
    do not vary between versions.
    """
    plain = _QUANTIFIER_OR_CLASS.sub(" ", _STATUS.sub(" ", pattern))
    return regex.findall(r"(?<![A-Za-z\d])\d+", plain)


def slowest_seconds(pattern: str, literals: Sequence[str] = ()) -> float:
    """CPU seconds of the slowest search in adversarial texts; stops at the first slow search.

    A search that is stopped after one second counts as one second.
    """
    compiled = regex.compile(pattern)
    slowest = 0.0
    for text in hostile_texts(literals):
        started = time.thread_time()
        try:
            compiled.search(text, timeout=4 * _SLOW_SECONDS)
        except TimeoutError:
            return 4 * _SLOW_SECONDS
        slowest = max(slowest, time.thread_time() - started)
        if slowest > _SLOW_SECONDS:
            break
    return slowest


def hostile_texts(literals: Sequence[str], size: int = _HOSTILE_CHARS) -> Iterator[str]:
    """Long texts that may almost match a regex, with the literals once or many times."""
    head = " ".join(literals)
    for filler in _FILLERS:
        # The different ending prevents "$" from matching, so that the regex tries all paths.
        yield f"{head} {(filler * size)[:size]}\n~"
        yield f"{(filler * size)[:size]}{head}"
    for literal in literals:
        yield (f"{literal} " * (size // (len(literal) + 1) + 1))[:size]


def _problem(signature: Signature, field: str, reason: str) -> Problem:
    # A missing field has no line; use the line of its parent.
    place = field
    while place and place not in signature.lines:
        place = place.rpartition(".")[0]
    return Problem(signature.path or signature.id, signature.lines.get(place, 1), field, reason)
