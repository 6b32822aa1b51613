"""Measures how many examples in a pack still match without the alternatives written for them.

An alternative that matches a single example provides no evidence that the next variant of the
message will match. Each example is therefore left out together with the alternatives that match
only that example. Then, all examples of the same library are left out together with the
alternatives that match only these. An example that the remaining alternatives still match
represents an unseen message.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures.matcher import Matcher
from flink_triage.signatures.pack import SignaturePack, build_pack
from flink_triage.signatures.samples import event_from_text, match_text
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.traces import extract

# The number of leading parts of a class name that identify the library: "org.apache.kafka",
# "com.mysql.cj".
_LIBRARY_PARTS = 3
NO_LIBRARY = "a line without a class"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Whether one example still matches without its alternatives, and without its library's.

    ``library`` is the library of the class or logger in the example.
    """

    signature: str
    sample: int
    library: str
    is_named_without_it: bool
    is_named_without_its_library: bool


def leave_out(pack: SignaturePack, settings: Settings = DEFAULT_SETTINGS) -> tuple[LeftOut, ...]:
    """The result for every example of signatures with ``any``, in signature ID order."""
    return tuple(
        left
        for signature in pack.signatures.values()
        if signature.mode == "any"
        for left in _of_signature(signature, settings)
    )


def _of_signature(signature: Signature, settings: Settings) -> Iterable[LeftOut]:
    samples = signature.examples.match
    libraries = [library_of(text) for text in samples]
    taken = _taken_by_unit(signature, settings)
    for sample, library in enumerate(libraries):
        of_library = {i for i, other in enumerate(libraries) if other == library}
        yield LeftOut(
            signature.id,
            sample,
            library,
            _is_named(sample, taken.values(), {sample}),
            _is_named(sample, taken.values(), of_library),
        )


def _is_named(sample: int, taken: Iterable[set[int]], without: set[int]) -> bool:
    """Whether an alternative that matches ``sample`` also matches an example not in ``without``."""
    return any(sample in of_unit and not of_unit <= without for of_unit in taken)


def without_each_example(
    signature: Signature, settings: Settings = DEFAULT_SETTINGS
) -> Iterator[Signature]:
    """For each example, the signature without the alternatives that match only that example."""
    taken = _taken_by_unit(signature, settings)
    units = enumerate(signature.alternatives)
    with_units = [(taken[_unit(index, each)], each) for index, each in units]
    for sample in range(len(signature.examples.match)):
        left = tuple(each for of_unit, each in with_units if of_unit != {sample})
        yield replace(signature, alternatives=left)


def _unit(index: int, alternative: Alternative) -> Hashable:
    """Identifies an alternative; all forms of an ``error`` count as one."""
    return index if alternative.error is None else alternative.error


def _taken_by_unit(signature: Signature, settings: Settings) -> Mapping[Hashable, set[int]]:
    """The indexes of the examples that each alternative matches; an ``error`` counts as one."""
    taken: dict[Hashable, set[int]] = {}
    for index, alternative in enumerate(signature.alternatives):
        alone = replace(signature, alternatives=(alternative,), count=1, within_seconds=None)
        matcher = Matcher(build_pack([alone]), settings)
        of_unit = taken.setdefault(_unit(index, alternative), set())
        of_unit.update(
            sample
            for sample, text in enumerate(signature.examples.match)
            if match_text(matcher, text)
        )
    return taken


def library_of(text: str) -> str:
    """The library of an event's root cause, or else of its logger; ``NO_LIBRARY`` if unknown."""
    event = event_from_text(text)
    _, trace = extract(event.message, event.continuation)
    name = trace.root_cause.type if trace is not None else event.logger or ""
    parts = name.split(".")[:-1]
    return ".".join(parts[:_LIBRARY_PARTS]) or NO_LIBRARY


def render_left_out(rows: Sequence[LeftOut]) -> str:
    """A description, and a table of the shares of matching examples by subsystem."""
    subsystems = sorted({row.signature.partition("/")[0] for row in rows})
    lines = [
        "Each example is left out together with the alternatives that match only that example; "
        "then all examples of one library are left out. An example that the remaining "
        "alternatives of its signature match represents an unseen message.",
        "",
        "| subsystem | examples | matched without the example | matched without its library |",
        "|---|---|---|---|",
        _row("**all**", rows),
    ]
    for subsystem in subsystems:
        of = [row for row in rows if row.signature.startswith(f"{subsystem}/")]
        lines.append(_row(subsystem, of))
    return "\n".join(lines) + "\n"


def _row(name: str, rows: Sequence[LeftOut]) -> str:
    alone = sum(row.is_named_without_it for row in rows)
    library = sum(row.is_named_without_its_library for row in rows)
    total = max(len(rows), 1)
    return (
        f"| {name} | {len(rows)} | {alone} ({round(100 * alone / total)} %) "
        f"| {library} ({round(100 * library / total)} %) |"
    )
