"""Renders configuration changes as text to paste, one block for each place that sets options.

`flink_triage.remediation.render_patch` renders a patch; any function with the same signature can
replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flink_triage.model import ConfigChange, Scope
from flink_triage.remediation import PatchForm, default_form, flink_line
from flink_triage.report.facts.sanitize import one_line

PatchRenderer = Callable[[Sequence[ConfigChange], "str | None", PatchForm], str]

# Human-readable names of the scopes; cluster and job options share Flink's own file.
_PLACES: dict[Scope, str] = {
    "connector": "connector or client properties",
    "code": "in the job's code",
    "platform": "platform (YARN, HDFS, Kubernetes, host)",
}


@dataclass(frozen=True, slots=True)
class Patch:
    """One block to paste: ``place`` is a file or a description, ``text`` has no final newline."""

    place: str
    text: str
    changes: tuple[ConfigChange, ...]
    is_flink_file: bool


def patches_of(
    changes: Iterable[ConfigChange], flink_version: str | None, renderer: PatchRenderer
) -> tuple[Patch, ...]:
    """Blocks to paste, Flink's own file first, without options that are already set."""
    groups: dict[str, list[ConfigChange]] = {}
    form = default_form(flink_version)
    file = form if flink_line(flink_version) else "Flink configuration"
    for change in changes:
        if change.action != "already-set":
            place = _PLACES.get(change.scope, file)
            groups.setdefault(place, []).append(change)
    patches = []
    for place, group in groups.items():
        is_flink_file = group[0].scope in ("cluster", "job")
        text = (
            renderer(group, flink_version, form) if is_flink_file else "\n".join(map(_line, group))
        )
        patches.append(Patch(place, text.rstrip("\n"), tuple(group), is_flink_file))
    return tuple(sorted(patches, key=lambda patch: not patch.is_flink_file))


def now(change: ConfigChange) -> str:
    """The current value: ``now 0``, ``default 0`` or ``now unset or unknown``."""
    if change.current is None:
        return "now unset or unknown"
    word = "default" if change.current_source == "default" else "now"
    return f"{word} {one_line(change.current)}"


def already(change: ConfigChange) -> str:
    """A sentence stating that the option is already set, and the reason.

    Most reasons already contain that statement.
    """
    statement = f"{change.key} is already"
    if change.reason.startswith(statement):
        return change.reason
    return f"{statement} {change.current or change.value}: {change.reason}"


def _line(change: ConfigChange) -> str:
    key = one_line(change.key)
    if change.action == "remove":
        return f"# remove {key}   # {now(change)}"
    return f"{key}: {one_line(change.value)}   # {now(change)}"
