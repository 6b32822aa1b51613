"""Renders a pack as two documentation pages: the signature catalog and the signature quality."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures.leave_one_out import leave_out, render_left_out
from flink_triage.signatures.matcher import Matcher
from flink_triage.signatures.pack import (
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    load_pack,
)
from flink_triage.signatures.samples import (
    event_from_text,
    match_text,
    overlap_matrix,
    untested_alternatives,
)
from flink_triage.signatures.signature import Alternative, ComputedValue, ConfigSpec, Signature
from flink_triage.traces import extract

_JIRA = re.compile(r"^[A-Z][A-Z0-9]+-\d+$")
_TIMING_ROUNDS = 5
_QUALITY_HEAD = """# How well each signature is tested

<!-- Generated: python -m flink_triage.signatures.catalogue --quality tests/logs/healthy -->

The last table lists, for each signature: the examples that it matches, the near misses that it does
not match, the alternatives that match no example, the matches in the healthy logs of the project,
the examples of other signatures that it also matches, and the mean time in microseconds for
matching an example or near miss. The times depend on the machine that generated this page.

"""
_GENERATED = "<!-- Generated: python -m flink_triage.signatures.catalogue > docs/signatures.md -->"


@dataclass(frozen=True, slots=True)
class Quality:
    """How well one signature is tested.

    ``missed_examples`` is the number of its examples that it does not match, and
    ``taken_near_misses`` the number of its near misses that it matches. ``fires_on`` contains the
    examples of other signatures that this signature also matches, as ``subsystem/name[index]``.
    ``microseconds`` is the mean time for matching an example or near miss, in the fastest of
    several rounds, or 0 if there is none.
    """

    signature: str
    examples: int
    near_misses: int
    missed_examples: int
    taken_near_misses: int
    untested_alternatives: int
    healthy_hits: int
    fires_on: tuple[str, ...]
    microseconds: float


def render_catalogue(pack: SignaturePack) -> str:
    """The text of ``docs/signatures.md``, which is deterministic for a given pack."""
    parts = [
        "# Signatures",
        "",
        _GENERATED,
        "",
        f"The built-in signatures describe {len(pack.signatures)} known failures. "
        "[signature-format.md](signature-format.md) explains the format of a signature file.",
        "",
        "| signature | what happened | severity | role |",
        "|---|---|---|---|",
    ]
    for signature in pack.signatures.values():
        link = f"[{signature.id}](#{signature.id.replace('/', '')})"
        cells = (link, _cell(signature.title), signature.severity, signature.role)
        parts.append(f"| {' | '.join(cells)} |")
    for subsystem, signatures in groupby(pack.signatures.values(), lambda s: s.subsystem):
        parts += ["", f"## {subsystem}"]
        for signature in signatures:
            parts += ["", *_section(signature)]
    return "\n".join(parts) + "\n"


def _section(signature: Signature) -> list[str]:
    remediation = signature.remediation
    lines = [
        f"### {signature.id}",
        "",
        f"**{_text(signature.title)}** ({signature.severity}, {signature.role})",
        "",
        _text(signature.cause),
        "",
        f"Recognized by {_recognition(signature)}.",
        "",
        f"**What to do** (risk: {remediation.risk}): {_text(remediation.summary)}",
    ]
    if remediation.all_steps:
        lines += ["", *(f"{n}. {_text(step)}" for n, step in enumerate(remediation.all_steps, 1))]
    if remediation.config:
        lines += ["", "| option | value | why |", "|---|---|---|"]
        lines += [_config_row(change) for change in remediation.config]
    for tried in remediation.commonly_tried:
        lines += ["", f"Commonly tried: {_text(tried.advice)} {_text(tried.assessment)}"]
    if remediation.verify:
        lines += ["", f"Verify: {_text(remediation.verify)}"]
    if signature.limits:
        lines += ["", f"Limits: {_text(signature.limits)}"]
    if signature.explains:
        links = ", ".join(f"[{one}](#{one.replace('/', '')})" for one in signature.explains)
        lines += ["", f"Explains: {links}"]
    versions = signature.versions
    known_versions = [("affected", versions.affected), ("fixed", versions.fixed)]
    if any(text for _, text in known_versions):
        line = "; ".join(f"{word}: {_text(text)}" for word, text in known_versions if text)
        lines += ["", f"Versions: {line}"]
    if remediation.references:
        lines += ["", f"References: {', '.join(_reference(r) for r in remediation.references)}"]
    return lines


def _recognition(signature: Signature) -> str:
    joint = {"any": "; or ", "all": "; and on the same event ", "sequence": "; then "}
    # All forms of an error are described as a single condition.
    conditions = dict.fromkeys(_condition(a) for a in signature.alternatives)
    description = joint[signature.mode].join(conditions)
    if signature.count > 1:
        description += f", at least {signature.count} times"
    if signature.within_seconds is not None:
        description += f" within {signature.within_seconds:g} s"
    if signature.vetoes:
        vetoes = dict.fromkeys(_condition(veto) for veto in signature.vetoes)
        description += f"; but not with {' or '.join(vetoes)}"
    return description


def _condition(alternative: Alternative) -> str:
    if alternative.error is not None:
        parts = [f"an error of {alternative.error}"]
    else:
        parts = [_code(literal) for literal in alternative.literals]
    types = alternative.throwables or alternative.root_causes
    if types and alternative.error is None:
        where = "in" if alternative.throwables else "as root cause, in"
        names = " or ".join(_code(name.rpartition(".")[2]) for name in types)
        parts.append(f"{where} {names}" if parts else names)
    if alternative.frame_origin is not None:
        code = "user code" if alternative.frame_origin == "user" else "a connector"
        parts.append(f"thrown by {code}" if parts else f"an exception of {code}")
    if alternative.frames:
        parts.append(f"at {' or '.join(_code(frame) for frame in alternative.frames)}")
    if alternative.loggers:
        loggers = (_code(logger.rpartition(".")[2]) for logger in alternative.loggers)
        parts.append(f"logged by {' or '.join(loggers)}")
    return " ".join(parts) or _code(alternative.regex or "")


def _config_row(change: ConfigSpec) -> str:
    if change.action == "remove":
        value = "remove"
    elif isinstance(change.value, ComputedValue):
        bounds = [
            f"{word} {_code(bound)}"
            for word, bound in (
                ("at least", change.value.at_least),
                ("at most", change.value.at_most),
            )
            if bound
        ]
        base = (
            "the larger of the current value and the value in the log"
            if change.value.stated
            else "the current value"
        )
        value = ", ".join([f"{change.value.factor:g} times {base}", *bounds])
    else:
        value = _code(change.value)
    reason = (
        f"In addition to the fix: {change.reason}" if change.purpose == "prevent" else change.reason
    )
    return f"| {_code(change.key)} | {value} | {_cell(reason)} |"


def _reference(reference: str) -> str:
    if _JIRA.match(reference):
        return f"[{reference}](https://issues.apache.org/jira/browse/{reference})"
    return f"<{reference}>" if reference.startswith("https://") else _code(reference)


def _text(text: str) -> str:
    # An opening angle bracket would be interpreted as HTML. Other markup is used as written.
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _code(text: str) -> str:
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}".replace("|", "\\|")


# --- quality -----------------------------------------------------------------------------------


def measure_quality(
    pack: SignaturePack,
    healthy: Iterable[str] = (),
    settings: Settings = DEFAULT_SETTINGS,
) -> tuple[Quality, ...]:
    """The quality of every signature.

    ``healthy`` are events from logs without failures.
    """
    fires_on: dict[str, list[str]] = {}
    for overlap in overlap_matrix(pack, settings):
        for other in overlap.others:
            fires_on.setdefault(other, []).append(f"{overlap.owner}[{overlap.sample}]")
    healthy_hits = count_hits(pack, healthy, settings)
    untested = untested_alternatives(pack, settings)
    return tuple(
        _quality(signature, healthy_hits, fires_on, untested, settings)
        for signature in pack.signatures.values()
    )


def count_hits(
    pack: SignaturePack, texts: Iterable[str], settings: Settings = DEFAULT_SETTINGS
) -> Mapping[str, int]:
    """The number of events that each signature matches, by signature ID."""
    matcher = Matcher(pack, settings)
    hits: dict[str, int] = {}
    for text in texts:
        for match in match_text(matcher, text):
            hits[match.signature] = hits.get(match.signature, 0) + 1
    return hits


def _quality(
    signature: Signature,
    healthy_hits: Mapping[str, int],
    fires_on: Mapping[str, Sequence[str]],
    untested: Mapping[str, tuple[int, ...]],
    settings: Settings,
) -> Quality:
    alone = Matcher(build_pack([signature]), settings)
    examples = signature.examples
    return Quality(
        signature=signature.id,
        examples=len(examples.match),
        near_misses=len(examples.no_match),
        missed_examples=sum(not match_text(alone, text) for text in examples.match),
        taken_near_misses=sum(bool(match_text(alone, text)) for text in examples.no_match),
        untested_alternatives=len(untested.get(signature.id, ())),
        healthy_hits=healthy_hits.get(signature.id, 0),
        fires_on=tuple(fires_on.get(signature.id, ())),
        microseconds=_microseconds(alone, (*examples.match, *examples.no_match)),
    )


def _microseconds(matcher: Matcher, texts: Sequence[str]) -> float:
    parsed = [
        (event, *extract(event.message, event.continuation))
        for event in (event_from_text(text) for text in texts)
    ]
    if not parsed:
        return 0.0
    best = float("inf")
    for _ in range(_TIMING_ROUNDS):
        started = time.perf_counter()
        for event, message, trace in parsed:
            matcher.match(event, message, trace, None)
        best = min(best, time.perf_counter() - started)
    return best / len(parsed) * 1e6


def render_quality(rows: Sequence[Quality]) -> str:
    """A Markdown table with one row per signature; the times depend on the machine."""
    lines = [
        "| signature | examples | near misses | alternatives without example | healthy matches "
        "| also matches | µs |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        examples = f"{row.examples - row.missed_examples}/{row.examples}"
        refused = f"{row.near_misses - row.taken_near_misses}/{row.near_misses}"
        lines.append(
            f"| {row.signature} | {examples} | {refused} | {row.untested_alternatives} "
            f"| {row.healthy_hits} | {len(row.fires_on)} | {row.microseconds:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _healthy_events(folder: Path) -> list[str]:
    """The events of the logs below ``folder``, which are split at lines that start with a date."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.log"))]
    return [event for text in texts for event in re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", text)]


if __name__ == "__main__":
    pack = load_pack([builtin_pack_directory()])
    if len(sys.argv) == 3 and sys.argv[1] == "--quality":
        rows = measure_quality(pack, _healthy_events(Path(sys.argv[2])))
        left_out = render_left_out(leave_out(pack))
        sys.stdout.write(_QUALITY_HEAD + left_out + "\n" + render_quality(rows))
    else:
        sys.stdout.write(render_catalogue(pack))
