"""Ignores failed lookups of the ResourceManager that soon succeed on retry.

Processes that start together look for each other for some time. For each attempt, the RPC system
may also log that the address did not respond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from flink_triage.diagnosis.durations import CONNECTION_ATTEMPT, REGISTRATION
from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.conditions import is_logger

# Loggers that report an unreachable address; before Flink 1.18, these are Akka loggers.
_RPC_LOGGERS = (
    "org.apache.pekko.remote.ReliableDeliverySupervisor",
    "org.apache.pekko.remote.transport.netty.NettyTransport",
)


def find_registration_retries(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    """Remove the matches of lookups if the same process connects within ``REGISTRATION``.

    The matches of RPC lines within ``CONNECTION_ATTEMPT`` before such a lookup are removed as well.
    """
    found: dict[str, datetime] = {}
    tried: dict[str, datetime] = {}
    changed: dict[int, Moment] = {}
    for index in reversed(range(len(moments))):
        moment = moments[index]
        observation, at = moment.observation, moment.at
        path, lifecycle = observation.event.path, observation.event.lifecycle
        kind = lifecycle.kind if lifecycle is not None else None
        if kind == "resourcemanager-found":
            found[path] = at
        elif (
            kind == "resourcemanager-sought" and path in found and found[path] - at <= REGISTRATION
        ):
            tried[path] = at
            changed[index] = replace(moment, observation=replace(observation, matches=()))
        elif path in tried and tried[path] - at <= CONNECTION_ATTEMPT and _is_of_rpc(observation):
            changed[index] = replace(moment, observation=replace(observation, matches=()))
    return changed


def _is_of_rpc(observation: Observation) -> bool:
    logger = observation.event.logger
    return logger is not None and any(is_logger(logger, one) for one in _RPC_LOGGERS)
