"""Identifies the process that wrote a line, and the TaskManager that a line refers to."""

from __future__ import annotations

from functools import lru_cache

import regex as re

from flink_triage.model import Observation

# Kinds of lifecycle lines: a shutdown signal, a startup banner, the start of a TaskManager.
SIGNAL, BANNER, STARTED = "signal", "version", "taskmanager-started"
# The message with which a TaskManager unregisters from the JobManager (TaskExecutor.onStop).
SHUTTING_DOWN = "The TaskExecutor is shutting down"
# "jobmanager.out" and "jobmanager.log.1" belong to the same process as "jobmanager.log".
_SUFFIX = re.compile(r"\.(?:log|out|err)(?:\.[\w.-]{1,40})?\Z")
_LOST = re.compile(r"TaskManager with id (?P<id>\S{1,300}) (?:is no longer reachable|timed out)")
_MAX_MESSAGE_CHARS = 8192


def process_of(observation: Observation) -> str:
    """The path of the log without suffixes, which identifies the process that wrote it."""
    return process_at(observation.event.path)


@lru_cache(maxsize=4096)
def process_at(path: str) -> str:
    return _SUFFIX.sub("", path)


def is_kind(observation: Observation, kind: str) -> bool:
    """Whether ``observation`` is a lifecycle line of this kind, and not a witness."""
    lifecycle = observation.event.lifecycle
    return lifecycle is not None and lifecycle.kind == kind and observation.occurrences > 0


def started_as(observation: Observation) -> str | None:
    """The resource id of the TaskManager, if the line reports its start."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind != STARTED or not lifecycle.resource_id:
        return None
    return bare_id(lifecycle.resource_id)


def lost_id(observation: Observation) -> str | None:
    """The resource id of the TaskManager that a line reports as lost, or ``None``."""
    if observation.occurrences == 0:
        return None
    for text in (observation.event.message, observation.root_cause_message or ""):
        found = _LOST.search(text[:_MAX_MESSAGE_CHARS])
        if found is not None:
            return bare_id(found["id"])
    return None


def bare_id(resource_id: str) -> str:
    """The resource id without metadata: ``container_1`` for ``container_1(node:8041)`` on YARN."""
    return resource_id.partition("(")[0]
