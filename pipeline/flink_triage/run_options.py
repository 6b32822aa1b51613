"""The options of a run, which both runners share, and values derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from flink_triage.diagnosis.timeline.timeline import LOG_READ, OUTSIDE_WINDOW
from flink_triage.fold_grains import LOGGED_AT_STARTUP
from flink_triage.logs.layouts.custom_layouts import read_layouts
from flink_triage.model import Event, FileProfile, Lifecycle, Observation, SkippedSignature
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures import SignaturePack, builtin_pack_directory, load_usable_pack

Progress = Callable[[int, int], None]
# A file with a lower layout confidence may contain arbitrary text.
LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run in both runners; see ``within`` for ``since`` and ``until``.

    ``group_by`` has the values of ``deployment_of``. ``flink_version`` overrides the versions found
    in the logs. ``timezone`` applies to log times without a time zone. ``workers`` is the maximum
    number of processes of the local runner; ``None`` means one per CPU core.
    """

    group_by: str = "directory"
    flink_version: str | None = None
    timezone: tzinfo = UTC
    since: datetime | None = None
    until: datetime | None = None
    signature_directories: tuple[Path, ...] = ()
    settings: Settings = DEFAULT_SETTINGS
    workers: int | None = None


def with_layouts(options: Options) -> Options:
    """The options, extended by the ``layouts.yaml`` files in the signature directories.

    Raises ``UsageError`` if a file is invalid.
    """
    found = read_layouts(options.signature_directories)
    settings = options.settings
    new = tuple(layout for layout in found if layout not in settings.reading.layouts)
    if not new:
        return options
    reading = replace(settings.reading, layouts=(*settings.reading.layouts, *new))
    return replace(options, settings=replace(settings, reading=reading))


def pack_of(options: Options) -> SignaturePack:
    """The built-in signatures and those in the signature directories of ``options``.

    Signatures that are ignored today get the role ``benign``. Invalid files in the signature
    directories are skipped. Raises ``SignaturePackError`` if a signature directory is missing, or
    if a built-in signature is invalid.
    """
    pack = load_usable_pack((builtin_pack_directory(), *options.signature_directories))
    return pack.heard_on(datetime.now(UTC).date())


def ignored_in(pack: SignaturePack) -> set[SkippedSignature]:
    """Currently ignored signatures and skipped signature files, with reasons."""
    today = datetime.now(UTC).date()
    ignored = (
        SkippedSignature(entry.signature, f"ignored: {entry.reason}")
        for entry in pack.decisions_on(today)
    )
    return {*ignored, *pack.skipped}


def within(observations: Iterable[Observation], options: Options) -> list[Observation]:
    """The observations from ``since`` (inclusive) to ``until`` (exclusive).

    Observations without a time, and those that a process logs at startup, such as its
    configuration, are always kept. A single witness represents all other observations.
    """
    kept: list[Observation] = []
    outside: Observation | None = None
    for observation in observations:
        if _is_within(observation, options):
            kept.append(observation)
        else:
            outside = outside or observation
    return [*kept, _witness_of(outside)] if outside is not None else kept


def witness_of_log(deployment: str, profile: FileProfile) -> Observation | None:
    """An observation which shows that a Flink log was read, for deployments without notable events.

    ``None`` if the file is quarantined, or if its head does not identify it as a Flink log.
    """
    is_log = profile.problem is None and profile.layout_confidence >= LEAST_CONFIDENCE
    if not is_log or (profile.process is None and profile.flink_version is None):
        return None
    event = Event(profile.path, 0, 0, 1, None, None, None, None, "", lifecycle=Lifecycle(LOG_READ))
    return Observation(
        deployment,
        event,
        profile.process,
        profile.host,
        *(None,) * 8,
        occurrences=0,
        flink_version=profile.flink_version,
    )


def _witness_of(observation: Observation) -> Observation:
    event = replace(
        observation.event,
        logged_at=None,
        message="",
        continuation=None,
        job_id=None,
        lifecycle=Lifecycle(OUTSIDE_WINDOW),
    )
    return replace(
        observation,
        event=event,
        fingerprint=None,
        exception_type=None,
        root_cause_type=None,
        root_cause_message=None,
        task=None,
        matches=(),
        occurrences=0,
    )


def _is_within(observation: Observation, options: Options) -> bool:
    at = observation.event.logged_at
    lifecycle = observation.event.lifecycle
    if at is None or (lifecycle is not None and lifecycle.kind in LOGGED_AT_STARTUP):
        return True
    if options.since is not None and at < options.since:
        return False
    return options.until is None or at < options.until
