"""Observations in time order in, the same ones reinterpreted by their neighbouring lines out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from flink_triage.diagnosis.durations import ANSWER, CONNECTION_ATTEMPT, REGISTRATION
from flink_triage.model import Observation
from flink_triage.signatures.conditions import is_logger

_REST_HANDLERS = ("org.apache.flink.runtime.rest.handler.", "o.a.f.r.r.h.")
# Loggers that report an unreachable address; akka's before Flink 1.18.
_RPC_LOGGERS = (
    "org.apache.pekko.remote.ReliableDeliverySupervisor",
    "org.apache.pekko.remote.transport.netty.NettyTransport",
)


def with_restarts_told(
    timed: list[tuple[Observation, datetime]],
) -> list[tuple[Observation, datetime]]:
    """Turn restarts by the adaptive scheduler into failures when a task failed before.

    The adaptive scheduler cancels and recreates a job after a task failure. It does the same to
    rescale the job, without a failure before.
    """
    failed: dict[str, datetime] = {}
    restarting: set[str] = set()
    told = []
    for observation, at in timed:
        lifecycle, path = observation.event.lifecycle, observation.event.path
        if lifecycle is not None:
            if lifecycle.kind in ("task-failed", "global-failure"):
                failed[path] = at
            elif lifecycle.kind == "rescheduled" and path in failed:
                if at - failed[path] <= ANSWER:
                    restarting.add(path)
            elif lifecycle.to_state == "CANCELLING" and path in restarting:
                restarting.remove(path)
                event = observation.event
                lifecycle = replace(lifecycle, to_state="RESTARTING")
                observation = replace(observation, event=replace(event, lifecycle=lifecycle))
        told.append((observation, at))
    return told


def without_overcome(
    timed: list[tuple[Observation, datetime]],
) -> list[tuple[Observation, datetime]]:
    """Remove matches of failed lookups of the ResourceManager if the process connected soon after.

    Processes that start together look for each other for some time. For each attempt, the RPC
    system may also log that the address did not respond.
    """
    found: dict[str, datetime] = {}
    tried: dict[str, datetime] = {}
    backwards = []
    for observation, at in reversed(timed):
        path, lifecycle = observation.event.path, observation.event.lifecycle
        kind = lifecycle.kind if lifecycle is not None else None
        if kind == "resourcemanager-found":
            found[path] = at
        elif (
            kind == "resourcemanager-sought" and path in found and found[path] - at <= REGISTRATION
        ):
            tried[path] = at
            observation = replace(observation, matches=())
        elif path in tried and tried[path] - at <= CONNECTION_ATTEMPT and _is_of_rpc(observation):
            observation = replace(observation, matches=())
        backwards.append((observation, at))
    return backwards[::-1]


def _is_of_rpc(observation: Observation) -> bool:
    logger = observation.event.logger
    return logger is not None and any(is_logger(logger, one) for one in _RPC_LOGGERS)


_JOB_UNKNOWN = "rest/job-unknown"


def unknown_jobs_asked_for(timed: Sequence[tuple[Observation, datetime]]) -> set[int]:
    """Indices of replies to clients that ask a running process for an unknown job.

    Open browser tabs and scripts keep polling, and no job is affected. If the logs hold such
    replies but no line about the life of a process or job, the matches stay: the reader asks for
    their meaning.
    """
    if not any(observation.event.lifecycle is not None for observation, _ in timed):
        return set()
    return {
        index
        for index, (observation, _) in enumerate(timed)
        if any(match.signature == _JOB_UNKNOWN for match in observation.matches)
        and (observation.event.logger or "").startswith(_REST_HANDLERS)
    }


# HotSpot throws these without a stack trace after it compiled the throwing code
# (-XX:+OmitStackTraceInFastThrow).
OMITTED_STACKS = frozenset(
    {
        "java.lang.ArithmeticException",
        "java.lang.ArrayIndexOutOfBoundsException",
        "java.lang.ArrayStoreException",
        "java.lang.ClassCastException",
        "java.lang.NullPointerException",
    }
)


def with_omitted_stacks(
    timed: list[tuple[Observation, datetime]],
) -> list[tuple[Observation, datetime]]:
    """Give an exception without a stack the matches of the last one that still had its stack."""
    last_with_stack: dict[str, Observation] = {}
    completed = []
    for observation, at in timed:
        kind = observation.root_cause_type
        if kind in OMITTED_STACKS:
            earlier = last_with_stack.get(kind)
            if observation.has_frames:
                last_with_stack[kind] = observation
            elif earlier is not None:
                place = max((m.line_offset for m in observation.matches), default=0)
                observation = replace(
                    observation,
                    matches=tuple(replace(m, line_offset=place) for m in earlier.matches),
                    first_user_frame=earlier.first_user_frame,
                )
        completed.append((observation, at))
    return completed
