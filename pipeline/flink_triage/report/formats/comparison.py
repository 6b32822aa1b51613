"""Renders a comparison or a history of causes as plain text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flink_triage.json_values import encode
from flink_triage.model.periods import CauseChange, Comparison, Recurrence
from flink_triage.report.facts.sanitize import clean_values, one_line
from flink_triage.report.facts.wording import count, instant
from flink_triage.report.formats.result_json import dump_json

_NOTHING = "no failure on either side"


def render_comparison(comparison: Comparison, format_: str) -> str:
    """Render ``text`` (two lines per cause, as ordered, then changed options) or ``json``."""
    if format_ == "json":
        return dump_json(encode(comparison), indent=2) + "\n"
    shown: Comparison = clean_values(comparison)
    counts = Counter(cause.change for cause in shown.causes)
    verdict = ", ".join(f"{number} {change}" for change, number in counts.items()) or _NOTHING
    lines = [f"before: {shown.before.name}", f"after:  {shown.after.name}", verdict, ""]
    for cause in shown.causes:
        lines.append(f"{cause.change:<8} {cause.cause}  {_amounts(cause)}")
        lines.append(f"         {one_line(cause.title)} · {one_line(cause.deployment)}")
    if shown.options:
        lines += ["", count(len(shown.options), "option") + " changed"]
        for option in shown.options:
            was, is_ = (_value(value) for value in (option.before, option.after))
            lines.append(f"         {option.key}: {was} -> {is_} · {one_line(option.deployment)}")
    return "\n".join(lines).rstrip() + "\n"


def render_recurrences(found: Sequence[Recurrence], format_: str) -> str:
    """Render ``text`` (two lines per cause, as ordered) or ``json``."""
    if format_ == "json":
        return dump_json(encode(found), indent=2) + "\n"
    if not found:
        return "no failures found\n"
    lines = []
    for cause in map(clean_values, found):
        word = "new" if cause.is_new else "known"
        lines.append(f"{word:<8} {cause.cause}  {one_line(cause.title)}")
        lines.append(
            f"         {count(cause.count, 'event')} on {count(cause.days, 'day')}, "
            f"{instant(cause.first_seen_at)} to {instant(cause.last_seen_at)}, "
            f"in {', '.join(map(one_line, cause.deployments))}"
        )
    return "\n".join(lines) + "\n"


def _amounts(cause: CauseChange) -> str:
    if cause.before_per_hour is None and cause.after_per_hour is None:
        return f"{cause.before:,} -> {cause.after:,} events"
    rates = [f"{rate or 0:.3g}" for rate in (cause.before_per_hour, cause.after_per_hour)]
    return f"{cause.before:,} -> {cause.after:,} events, {rates[0]} -> {rates[1]} per hour"


def _value(value: str | None) -> str:
    return "not set" if value is None else one_line(value)
