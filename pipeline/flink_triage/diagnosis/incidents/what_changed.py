"""Finds the changes between the last healthy start and the last start before a failure.

The last start before the failure is compared with the last start in the preceding generation (see
``timeline.starts``) of the same kind of process or the same job. Values that differ between
containers (ports, addresses, ids, log files) are omitted. So are consequences of other changes,
such as heap sizes that follow from the configured memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import get_args

import regex as re

from flink_triage.diagnosis.durations import CHANGED_WITHIN, STARTUP
from flink_triage.diagnosis.episodes.episodes import Episode
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.ranking.causality import Candidate
from flink_triage.diagnosis.timeline.starts import Lane, Starts
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import ChangeKind, Incident, ObservedChange, Process, StartOf
from flink_triage.remediation import OptionTable
from flink_triage.settings import Settings

_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
_PROCESSES: tuple[Process, ...] = ("jobmanager", "taskmanager")

# Keys of options and system properties with values that are specific to one container.
_OF_CONTAINER = re.compile(r"(?:^|[._-])(?:ports?|host|hostname|address|id|log\.file)\Z")
# Parts of values that differ between containers or runs: UUIDs, YARN ids, checkpoint ids, IPv4
# addresses, random numbers, and other hexadecimal ids. "268435456b" does not match; it is a size.
_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:application|container|appattempt)_[0-9a-z_]{5,80}"
    r"|chk-\d{1,19}|\d{15,20}"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?"
    r"|(?!\d+[a-f]?(?![0-9A-Za-z]))(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{6,64}"
    r")(?![0-9A-Za-z])"
)
_JAR = re.compile(r"(?P<name>.+?)-(?!1\.2-api)(?P<version>\d+(?:\.\d.*|-SNAPSHOT)?)\.jar")

# BashJavaUtils and TaskExecutorProcessUtils compute these from the configured memory.
_DERIVED_OPTIONS = frozenset({"-Xmx", "-Xms", "-XX:MaxDirectMemorySize", "-XX:MaxMetaspaceSize"})
_DERIVED_SIZE = re.compile(r"\d+b")
_MEMORY_KEY = re.compile(r"(?:jobmanager|taskmanager)\.(?:memory|heap|cpu)\.")
_JVM_OPTIONS_KEY = "env.java.opts"
_SWITCH = re.compile(r"-XX:[+-]")


def with_changes(
    incident: Incident,
    episode: Episode,
    ranked: Sequence[Candidate],
    starts: Starts,
    options: OptionTable,
    settings: Settings,
) -> Incident:
    """The incident with its first ``max_changes`` changes and the number of other changes.

    The incident is unchanged if its cause has no timestamp, or if several clusters run
    concurrently.
    """
    at = _cause_shown_at(episode, ranked)
    if at == NO_TIME:
        return incident
    until = episode.last_fault.at + STARTUP
    if starts.is_shared(at, until):
        return incident
    lanes = [Lane(process) for process in _PROCESSES]
    lanes += sorted({starts.lane_of(job) for job in episode.job_ids if job is not None})
    found: dict[tuple[str, str, str | None, str | None], ObservedChange] = {}
    for lane in lanes:
        for change in _changes_of(lane, starts, at, until, options):
            # All processes print the cluster options. List each change only once.
            found.setdefault((change.what, change.name, change.before, change.after), change)
    kept = sorted(
        _without_consequences(list(found.values())),
        key=lambda change: (_KINDS.index(change.what), change.name),
    )
    shown = tuple(_shortened(change, settings) for change in kept[: settings.max_changes])
    return replace(incident, changes=shown, changes_left_out=len(kept) - len(shown))


def _cause_shown_at(episode: Episode, ranked: Sequence[Candidate]) -> datetime:
    """The time at which the highest-ranked cause was first seen, or else that of the first fault.

    Earlier faults may belong to an old cluster that is being replaced.
    """
    cause = next((candidate for candidate in ranked if candidate.signature.is_answer), None)
    return cause.hits[0].moment.at if cause is not None else episode.first_fault.at


def _changes_of(
    lane: Lane, starts: Starts, at: datetime, until: datetime, options: OptionTable
) -> Iterator[ObservedChange]:
    generations = starts.before(lane, at)
    if generations is None:
        return
    healthy, failing = generations
    start = failing.start_at(at)
    if start is None or at - start.at > CHANGED_WITHIN:
        return
    ends = _start_of(lane, healthy.starts[-1]), _start_of(lane, start)
    for what in _KINDS:
        before = healthy.values(what, start.at, until)
        after = failing.values(what, at, until)
        for name, was, now in _differences(what, before, after):
            key = name.removeprefix("-D")
            if what == "jvm-option" and name != key and key in options.keys:
                # A dynamic property among the program arguments.
                yield ObservedChange("configuration", key, was, now, *ends)
            else:
                yield ObservedChange(what, name or lane.job or "", was, now, *ends)


Difference = tuple[str, str | None, str | None]


def _differences(
    what: ChangeKind, before: dict[str, str], after: dict[str, str]
) -> Iterable[Difference]:
    """The name, old value, and new value of each difference; empty if one side has no facts."""
    if not before or not after:
        return ()
    if what == "parallelism":
        return _parallelism(before, after)
    if what == "jar":
        before, after = _versions_of_jars(before[""]), _versions_of_jars(after[""])
    # If less than half of the earlier names are present, the log of the later start was probably
    # truncated, so the missing names do not count as removed. This does not apply to JARs, which
    # are logged on one line.
    is_whole = what == "jar" or 2 * len(before.keys() & after.keys()) >= len(before)
    return [
        (name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if (name in after or is_whole)
        and not _OF_CONTAINER.search(name.removeprefix("-D"))
        and _comparable(before.get(name)) != _comparable(after.get(name))
    ]


def _comparable(value: str | None) -> str | None:
    return None if value is None else _ID.sub("<id>", value)


def _parallelism(before: dict[str, str], after: dict[str, str]) -> list[Difference]:
    """The tasks in both starts whose parallelism changed.

    If all of them changed in the same way, the result is a single difference without a name.
    """
    tasks = sorted(before.keys() & after.keys())
    changed = [(task, before[task], after[task]) for task in tasks if before[task] != after[task]]
    values = {(was, now) for _, was, now in changed}
    if len(changed) == len(tasks) and len(values) == 1:
        return [("", *values.pop())]
    return list(changed)


def _versions_of_jars(jars: str) -> dict[str, str]:
    """The version of each JAR, by its name without the version; several versions are joined.

    A JAR without a version has its file name as the version.
    """
    versions: dict[str, set[str]] = {}
    for jar in filter(None, jars.split(":")):
        found = _JAR.fullmatch(jar)
        name, version = (found["name"], found["version"]) if found else (jar, jar)
        versions.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(of)) for name, of in versions.items()}


def _without_consequences(changes: Sequence[ObservedChange]) -> Iterator[ObservedChange]:
    """The changes, except those that are consequences of other changes.

    A new Flink version changes the versions of Flink's JARs, configured memory changes the sizes
    that are computed from it, and ``env.java.opts`` changes the JVM options.
    """
    flink = [(c.before, c.after) for c in changes if c.what == "flink-version"]
    configured = [c for c in changes if c.what == "configuration" and not _is_computed(c)]
    has_memory = any(_MEMORY_KEY.match(change.name) for change in configured)
    java_options = [
        _SWITCH.sub("-XX:", value)
        for change in configured
        if change.name.startswith(_JVM_OPTIONS_KEY)
        for value in (change.before, change.after)
        if value is not None
    ]
    for change in changes:
        is_of_flink = change.what == "jar" and (change.before, change.after) in flink
        is_of_memory = has_memory and _is_computed(change)
        is_of_options = change.what == "jvm-option" and any(
            change.name in value for value in java_options
        )
        if not (is_of_flink or is_of_memory or is_of_options):
            yield change


def _is_computed(change: ObservedChange) -> bool:
    if change.what == "jvm-option":
        return change.name in _DERIVED_OPTIONS
    sizes = [value for value in (change.before, change.after) if value is not None]
    is_memory = _MEMORY_KEY.match(change.name) is not None
    return is_memory and any(_DERIVED_SIZE.fullmatch(size) for size in sizes)


def _start_of(lane: Lane, start: Moment) -> StartOf:
    event = start.observation.event
    return StartOf(lane.process, redact_path(event.path), event.line, event.logged_at)


def _shortened(change: ObservedChange, settings: Settings) -> ObservedChange:
    """The change, with long values trimmed to start shortly before their first difference."""
    limit = settings.max_excerpt_chars
    pairs = enumerate(zip_longest(change.before or "", change.after or ""))
    differs_at = next((index for index, (was, now) in pairs if was != now), 0)
    begin = max(differs_at - limit // 4, 0)

    def short(value: str | None) -> str | None:
        if value is None or len(value) <= limit:
            return value
        part = value[begin : begin + limit]
        return f"{'…' if begin else ''}{part}{'…' if begin + limit < len(value) else ''}"

    return replace(
        change, name=change.name[:limit], before=short(change.before), after=short(change.after)
    )
