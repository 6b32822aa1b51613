"""Describes incidents and the coverage of a result in phrases that several formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from flink_triage.model import (
    SEVERITIES,
    VERDICTS,
    Coverage,
    Diagnosis,
    Evidence,
    Incident,
    Quarantined,
    Result,
)
from flink_triage.report.facts.sanitize import one_line

T = TypeVar("T")

# "Customer Totals (1/2)" or "Customer Totals (1/2)#0": the task as Flink prints a subtask.
_SUBTASK = re.compile(r"(?P<task>.*\S) \((?P<subtask>\d{1,6})/(?P<parallelism>\d{1,6})\)(?:#\d+)?")
_HEX_ID = re.compile(r"[0-9a-f]{32}")

_MAX_TASK_CHARS = 30
_MAX_KEY_CHARS = 300
# Flink's prefix for a throwable from a different process; its text follows.
_WRAPPER = "Caused by: org.apache.flink.util.SerializedThrowable: "

_SURE = ((0.95, "almost certain"), (0.8, "likely"), (0.5, "plausible"), (0.0, "a weak guess"))

RISKS = {
    "live": "can be applied while the job runs",
    "restart": "needs a restart of the job",
    "state-migration": "changes how state is stored: take a savepoint first",
    "data-loss": "can lose data: read the steps before you act",
}


@dataclass(frozen=True, slots=True)
class Consequence:
    """A consequence of a diagnosis; ``depth`` is 1 for a direct consequence.

    ``rank`` is its rank within the incident, or ``None`` if the consequence does not appear in the
    log.
    """

    depth: int
    signature: str
    title: str
    occurrences: int
    rank: int | None


def instant(at: datetime | None) -> str:
    """The time as ``2026-11-21 05:52:20 UTC``, or ``unknown time``."""
    return f"{_utc(at):%Y-%m-%d %H:%M:%S} UTC" if at is not None else "unknown time"


def clock(at: datetime | None, day_of: datetime | None = None) -> str:
    """The UTC time as ``05:52:20``, after the date unless it is the day of ``day_of``."""
    if at is None:
        return "unknown time"
    is_same_day = day_of is not None and _utc(at).date() == _utc(day_of).date()
    return f"{_utc(at):%H:%M:%S}" if is_same_day else f"{_utc(at):%Y-%m-%d %H:%M:%S}"


def duration(start: datetime | None, end: datetime | None) -> str | None:
    """A duration such as ``34 s``, ``2 min 5 s`` or ``2 d 4 h``; ``None`` if it is unknown."""
    if start is None or end is None:
        return None
    seconds = max(0, round((_utc(end) - _utc(start)).total_seconds()))
    for size, unit, rest_size, rest_unit in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // rest_size
            return f"{seconds // size} {unit}" + (f" {rest} {rest_unit}" if rest else "")
    return f"{seconds} s"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun, such as ``1 event`` or ``1,234 events``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(byte_count: int) -> str:
    """The size in binary units, such as ``305 KiB`` or ``1.2 GiB``."""
    amount = float(byte_count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"


def root(incident: Incident) -> Diagnosis | None:
    return incident.diagnoses[0] if incident.diagnoses else None


def since(incident: Incident) -> datetime | None:
    """Start of the failure: the first fault, or else the root cause or the start of the episode."""
    first = incident.first_fault.at if incident.first_fault is not None else None
    cause = root(incident)
    return first or (cause.first_seen_at if cause else None) or incident.started_at


def state(incident: Incident) -> str:
    """The verdict as one phrase: ``failing since 2026-11-21 05:52:20 UTC``.

    The change since the last stored run, if any, comes first: ``worse · failing ...``.
    """
    if not incident.is_failure:
        return incident.verdict
    begun = instant(since(incident))
    phrase = {
        "failed": f"failed, first fault at {begun}",
        "ongoing": f"failing since {begun}",
        "recovered": f"recovered, first fault at {begun}",
        "unknown": f"faults since {begun}",
    }[incident.outcome]
    if incident.verdict != "diagnosed":
        phrase = f"cause undetermined · {phrase}"
    return f"{incident.status} · {phrase}" if incident.status is not None else phrase


def job_of(incident: Incident) -> str | None:
    """The job as ``job "orders" d1dfe426``, with a short ID; ``None`` without a name and an ID."""
    parts = []
    if incident.job_name:
        parts.append(f'"{one_line(incident.job_name)}"')
    if incident.job_id:
        job_id = one_line(incident.job_id)
        parts.append(job_id[:8] if _HEX_ID.fullmatch(job_id) else job_id)
    return "job " + " ".join(parts) if parts else None


def rank_1_label(diagnosis: Diagnosis) -> str:
    """The label of a diagnosis with rank 1, according to its role; other roles are returned."""
    return {
        "trigger": "root cause",
        "contributing": "contributing cause",
        "symptom": "symptom: its cause was not found in these logs",
    }.get(diagnosis.role, diagnosis.role)


def sureness(confidence: float) -> str:
    return next((word for floor, word in _SURE if confidence >= floor), _SURE[-1][1])


def percent(confidence: float) -> str:
    return f"{min(max(confidence, 0.0), 1.0):.0%}".replace("%", " %")


def where(diagnosis: Diagnosis, *, is_short: bool = False) -> tuple[str, ...]:
    """The affected tasks and hosts: ``both subtasks of "Customer Totals"``, ``host worker-3``.

    Names without a subtask number come first. With ``is_short``, only the first operator of a long
    chain is shown.
    """
    tasks: dict[tuple[str, str], list[str]] = {}
    places = []
    for name in map(one_line, diagnosis.subtasks):
        found = _SUBTASK.fullmatch(name)
        if found is None:
            places.append(name)
        else:
            tasks.setdefault((found["task"], found["parallelism"]), []).append(found["subtask"])
    for (task, parallelism), subtasks in tasks.items():
        name = _short_task(task) if is_short else task
        places.append(f'{_which_subtasks(subtasks, parallelism)} of "{name}"')
    if diagnosis.hosts:
        shown, left_out = capped(diagnosis.hosts, 4)
        hosts = ", ".join(map(one_line, shown)) + (f" and {left_out} more" if left_out else "")
        places.append(("host " if len(diagnosis.hosts) == 1 else "hosts ") + hosts)
    return tuple(places)


def _which_subtasks(subtasks: Sequence[str], parallelism: str) -> str:
    distinct = sorted({int(subtask) for subtask in subtasks})
    if len(distinct) == int(parallelism):
        word = {1: "the only subtask", 2: "both subtasks"}
        return word.get(len(distinct), f"all {len(distinct)} subtasks")
    shown, left_out = capped(distinct, 8)
    numbers = ", ".join(map(str, shown)) + (f" and {left_out} more" if left_out else "")
    return f"subtask{'s' if len(distinct) > 1 else ''} {numbers} of {parallelism}"


def _short_task(task: str) -> str:
    first, arrow, _ = task.partition(" -> ")
    return f"{first} -> …" if arrow and len(task) > _MAX_TASK_CHARS else task


def consequences(incident: Incident, diagnosis: Diagnosis) -> tuple[Consequence, ...]:
    """All consequences of the diagnosis, depth first, each signature once."""
    by_signature = {other.signature: other for other in incident.diagnoses}
    found: list[Consequence] = []
    seen = {diagnosis.signature}
    waiting = [(1, signature) for signature in reversed(diagnosis.explains)]
    while waiting:
        depth, signature = waiting.pop()
        if signature in seen:
            continue
        seen.add(signature)
        other = by_signature.get(signature)
        if other is None:
            found.append(Consequence(depth, signature, signature, 0, None))
            continue
        found.append(Consequence(depth, signature, other.title, other.occurrences, other.rank))
        waiting.extend((depth + 1, following) for following in reversed(other.explains))
    return tuple(found)


def ending(incident: Incident) -> str | None:
    """The end of the incident: ``3 restarts in 12 s, then the job failed for good at 05:52:33``.

    ``None`` if there were no restarts and the outcome is unknown.
    """
    parts = []
    if incident.restarts:
        took = duration(since(incident), incident.ended_at)
        parts.append(count(incident.restarts, "restart") + (f" in {took}" if took else ""))
    at = "" if incident.ended_at is None else f" at {clock(incident.ended_at, since(incident))}"
    last = {
        "failed": f"the job failed for good{at}",
        "recovered": f"the job recovered{at}",
        "ongoing": "it still fails at the end of the log",
    }
    if incident.outcome in last:
        parts.append(last[incident.outcome])
    return ", then ".join(parts) or None


def last_healthy(incident: Incident) -> str | None:
    checkpoint = incident.last_healthy
    if checkpoint is None:
        return None
    at = "" if checkpoint.at is None else f" at {clock(checkpoint.at, since(incident))}"
    return f"checkpoint {checkpoint.checkpoint_id}{at}"


def key_lines(excerpt: str) -> tuple[str, ...]:
    """The first line of an excerpt, and its last line with a cause, if any; both shortened."""
    lines = [one_line(line) for line in excerpt.split("\n") if line.strip()]
    if not lines:
        return ()
    causes = [line for line in lines[1:] if line.startswith("Caused by:")]
    return tuple(_shortened(line) for line in (lines[0], *causes[-1:]))


def key_line(excerpt: str) -> str:
    """The most informative line: the last cause, or else the first line; empty without text."""
    return (key_lines(excerpt) or ("",))[-1]


def _shortened(line: str) -> str:
    if line.startswith(_WRAPPER):
        line = f"Caused by: ... {line[len(_WRAPPER) :]}"
    return line if len(line) <= _MAX_KEY_CHARS else f"{line[: _MAX_KEY_CHARS - 1]}…"


def location(evidence: Evidence, width: int = 48) -> str:
    """``path:line``; a path longer than ``width`` loses its start, but never the file name."""
    path = one_line(evidence.path)
    if len(path) > width:
        tail = path[-(width - 2) :]
        path = "…/" + (tail[tail.index("/") + 1 :] if "/" in tail else path.rpartition("/")[2])
    return f"{path}:{evidence.line}"


def urgency(incident: Incident) -> tuple[int, int, int, float, str, str]:
    """Sort key: verdict in the order of ``VERDICTS``, severity, outcome, newest first."""
    cause = root(incident)
    severity = SEVERITIES.index(cause.severity) if cause else len(SEVERITIES)
    outcome = ("failed", "ongoing", "unknown", "recovered").index(incident.outcome)
    rank = VERDICTS.index(incident.verdict)
    begun = since(incident) if incident.is_failure else None
    age = -_utc(begun).timestamp() if begun is not None else 0.0
    return rank, severity, outcome, age, incident.deployment, incident.incident_id


def by_urgency(incidents: Iterable[Incident]) -> tuple[Incident, ...]:
    return tuple(sorted(incidents, key=urgency))


def overview(result: Result) -> str:
    """The totals: ``40 deployments · 3 diagnosed (2 critical) · 1 undetermined · 36 healthy``.

    If there are more incidents than deployments, the incidents are also counted: ``2 deployments ·
    5 incidents · 5 diagnosed``. Deployments that could not be diagnosed come last: ``1 not
    diagnosed``.
    """
    incidents = result.incidents
    undiagnosed = [item.path for item in result.coverage.quarantined if item.is_undiagnosed]
    names = {incident.deployment for incident in incidents}
    deployments = count(len(names.union(undiagnosed)), "deployment")
    if len(incidents) > len(names):
        deployments += f" · {count(len(incidents), 'incident')}"
    numbers = {
        verdict: sum(incident.verdict == verdict for incident in incidents) for verdict in VERDICTS
    }
    causes = [root(incident) for incident in incidents if incident.verdict == "diagnosed"]
    critical = sum(cause is not None and cause.severity == "critical" for cause in causes)
    parts = [f"{number:,} {verdict}" for verdict, number in numbers.items() if number]
    if critical and numbers["diagnosed"]:
        parts[0] += f" ({critical:,} critical)"
    if undiagnosed:
        parts.append(f"{len(undiagnosed):,} not diagnosed")
    return " · ".join([deployments, *parts])


def _masked(coverage: Coverage) -> str:
    """The masked values: ``12 values masked (9 password, 3 token)``, most frequent kinds first."""
    kinds = sorted(coverage.redactions_by_kind.items(), key=lambda kind: (-kind[1], kind[0]))
    by_kind = ", ".join(f"{number:,} {kind}" for kind, number in kinds)
    masked = f"{count(coverage.redactions, 'value')} masked"
    return f"{masked} ({by_kind})" if by_kind else masked


def gap_label(item: Quarantined) -> str:
    """The label of an input that was not read; empty for a deployment that was not diagnosed.

    The reason of the latter already states that it was not diagnosed.
    """
    return "" if item.is_undiagnosed else "not read: "


def coverage_line(coverage: Coverage) -> str:
    """The amounts read and skipped; never empty, because an empty output could suggest health."""
    skipped = f"{len(coverage.signatures_skipped):,} skipped"
    ignored = sum(item.is_ignored for item in coverage.quarantined)
    undiagnosed = sum(item.is_undiagnosed for item in coverage.quarantined)
    parts = [
        f"{count(coverage.files, 'file')} ({size(coverage.bytes)})",
        count(coverage.events, "event"),
        count(coverage.stack_traces, "stack trace"),
        f"{count(coverage.signatures_evaluated, 'signature')}, {skipped}",
        f"{len(coverage.quarantined) - ignored - undiagnosed:,} quarantined",
    ]
    if ignored:
        parts.append(f"{ignored:,} ignored")
    if coverage.truncated:
        parts.append(f"{coverage.truncated:,} truncated")
    if coverage.redactions:
        parts.append(_masked(coverage))
    if coverage.decode_errors:
        parts.append(count(coverage.decode_errors, "character replaced", "characters replaced"))
    parts.append(f"timestamps without a time zone are read as {coverage.assumed_timezone}")
    return " · ".join(parts)


def capped(items: Sequence[T], limit: int) -> tuple[tuple[T, ...], int]:
    """The first ``limit`` items, and the number of the others."""
    return tuple(items[:limit]), max(0, len(items) - limit)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
