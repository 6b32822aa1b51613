"""Reinterprets the moments of one deployment with the rules of `CONTEXT`.

``make ablate`` omits each rule in turn and prints how the results on labeled logs change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flink_triage.diagnosis.context.adaptive_restarts import find_adaptive_restarts
from flink_triage.diagnosis.context.handled_exceptions import mark_handled_exceptions
from flink_triage.diagnosis.context.lost_jobmanager import find_lost_jobmanagers
from flink_triage.diagnosis.context.omitted_stacks import complete_stacks
from flink_triage.diagnosis.context.orderly_shutdown import mark_stop
from flink_triage.diagnosis.context.read_from_text import mark_text
from flink_triage.diagnosis.context.registration_retries import find_registration_retries
from flink_triage.diagnosis.context.stopped_taskmanagers import find_stopped_taskmanagers
from flink_triage.diagnosis.context.system_exit import find_exits
from flink_triage.diagnosis.context.unknown_job_requests import ignore_unknown_job_requests
from flink_triage.diagnosis.context.unmet_slot_requests import ignore_met_slot_requests
from flink_triage.diagnosis.moment import Moment
from flink_triage.signatures import SignaturePack


@dataclass(frozen=True, slots=True)
class ContextRule:
    """A rule whose ``apply`` returns the changed moments by index; rules apply in order.

    ``description`` is one sentence for ``docs/diagnosis.md``. ``source`` is the class or the kind
    of log whose lines the rule reads.
    """

    id: str
    apply: Callable[[Sequence[Moment], SignaturePack], dict[int, Moment]]
    description: str
    source: str


def apply_context(
    moments: Sequence[Moment], pack: SignaturePack, without: frozenset[str] = frozenset()
) -> list[Moment]:
    """Apply all rules except ``without``; return the moments in time order."""
    result = list(moments)
    for rule in CONTEXT:
        if rule.id not in without:
            for index, moment in rule.apply(result, pack).items():
                result[index] = moment
    return sorted(result, key=lambda moment: moment.at)


CONTEXT: tuple[ContextRule, ...] = (
    ContextRule(
        "read-from-text",
        mark_text,
        "A line without a log header, a stack trace, or a lifecycle event is prose.",
        "issues, chat messages, documents",
    ),
    ContextRule(
        "adaptive-restarts",
        find_adaptive_restarts,
        "The cancellation of a job that is recreated right after a task or global failure is a "
        "restart.",
        "AdaptiveScheduler",
    ),
    ContextRule(
        "registration-retries",
        find_registration_retries,
        "Failed lookups of the ResourceManager do not count if the process connects soon after.",
        "TaskExecutor, JobMaster",
    ),
    ContextRule(
        "omitted-stacks",
        complete_stacks,
        "An exception whose trace HotSpot omits, such as a NullPointerException, gets the "
        "matches of the last one of its class with a trace.",
        "HotSpot, OmitStackTraceInFastThrow",
    ),
    ContextRule(
        "orderly-shutdown",
        mark_stop,
        "If the JobManager and other processes receive a signal, their lines are not faults for "
        "a minute or until they restart.",
        "SignalHandler",
    ),
    ContextRule(
        "unmet-slot-requests",
        ignore_met_slot_requests,
        "A request for a TaskManager counts only if a job did not get its slots in the meantime.",
        "ActiveResourceManager",
    ),
    ContextRule(
        "handled-exceptions",
        mark_handled_exceptions,
        "An exception that user code logs and that has no specific signature is not a failure if "
        "jobs continue without a failure.",
        "loggers of user code",
    ),
    ContextRule(
        "unknown-job-requests",
        ignore_unknown_job_requests,
        "REST requests for an unknown job do not count if the logs contain a lifecycle event.",
        "AbstractHandler",
    ),
    ContextRule(
        "stopped-taskmanagers",
        find_stopped_taskmanagers,
        "A TaskManager that received a signal up to five minutes before its loss was stopped.",
        "SignalHandler",
    ),
    ContextRule(
        "lost-jobmanager",
        find_lost_jobmanagers,
        "If a job ran until shortly before and no shutdown was logged, a new JobManager replaces "
        "a killed one.",
        "EnvironmentInformation",
    ),
    ContextRule(
        "system-exit",
        find_exits,
        "If a TaskManager shuts down without a signal or a fatal error, and a different log "
        "reports its end, it called System.exit.",
        "shutdown hooks, .out files",
    ),
)
