"""Parses messages about jobs, tasks, checkpoints, processes, and options into ``Lifecycle``.

The messages are those of Flink 1.9 to 2.3, and failure messages also of 1.0 to 1.8. The comments in
the table name the classes that log them. An event that contains one of the ``LITERALS`` is notable,
although most of these messages are logged at INFO. There are two exceptions: in documents, events
without a timestamp are not notable, and ``routine`` drops most completed checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex as re

from flink_triage.logs import banner, operator_status
from flink_triage.model import Lifecycle

_ID = r"[0-9a-f]{32}"
# "Map -> Sink (2/4)#1 (attempt ID)"; the JobManager omits "#1", and since 1.16 the ID ends in "_1".
_EXECUTION = (
    r"(?P<task>.{1,2000}?) ?\((?P<subtask>\d{1,6})/(?P<parallelism>\d{1,6})\)"
    r"(?:#(?P<attempt>\d{1,9}))?(?: - execution #(?P<attempt_>\d{1,9}))?"
    r"(?: \((?P<execution>[0-9a-f_]{1,120})\))?"
)


# Clients of Flink 1.4 and earlier print the state changes that they receive from the JobManager.
_CLIENT_TIME = r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d[\t ]"


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    literal: str
    pattern: re.Pattern[str]


def _kind(name: str, literal: str, pattern: str) -> _Kind:
    return _Kind(name, literal, re.compile(pattern))


_TABLE: tuple[_Kind, ...] = (
    # Execution and Task (1.16+): the first subtask in its first attempt represents the task
    _kind(
        "task-running",
        "_0_0) switched from INITIALIZING to RUNNING",
        r"^(?P<value>.{1,2000}? ?\(\d{1,6}/\d{1,6}\))(?:#\d{1,9})?"
        r" \((?P<execution>[0-9a-f_]{1,120})\) switched from INITIALIZING to RUNNING",
    ),
    # ExecutionGraph: DefaultExecutionGraph.transitionState
    _kind(
        "job-state",
        "switched from state ",
        rf"Job (?P<job_name>.{{0,2000}}?) \((?P<job_id>{_ID})\) switched from state"
        r" (?P<from_state>[A-Z]+) to (?P<to_state>[A-Z]+)",
    ),
    # AbstractApplication (2.3+)
    _kind(
        "application-state",
        "switched from state ",
        rf"Application .{{0,2000}}? \({_ID}\) switched from state"
        r" (?P<from_state>[A-Z]+) to (?P<to_state>[A-Z]+)",
    ),
    # Execution.transitionState (JobManager) and Task.transitionState (TaskManager)
    _kind(
        "task-failed",
        " to FAILED",
        rf"^(?:{_CLIENT_TIME})?{_EXECUTION}(?: \[[^\]]*\])? switched"
        r"(?: from (?P<from_state>[A-Z]+))? to (?P<to_state>FAILED)",
    ),
    # JobClientActor (up to 1.4): ExecutionGraphMessages.JobStatusChanged
    _kind(
        "job-state",
        "Job execution switched to status ",
        r"Job execution switched to status (?P<to_state>[A-Z]+)",
    ),
    # CheckpointCoordinator
    _kind(
        "checkpoint-completed",
        "Completed checkpoint ",
        rf"Completed checkpoint (?P<checkpoint_id>\d+) for job (?P<job_id>{_ID})",
    ),
    _kind(
        "checkpoint-declined",
        "Decline checkpoint ",
        r"Decline checkpoint (?P<checkpoint_id>\d+) by task (?P<execution>[0-9a-f_]+)"
        rf" of job (?P<job_id>{_ID})",
    ),
    _kind(
        "checkpoint-expired",
        "expired before completing",
        rf"Checkpoint (?P<checkpoint_id>\d+) of job (?P<job_id>{_ID}) expired before completing",
    ),
    # CheckpointFailureManager
    _kind(
        "checkpoint-failed",
        "consecutive failed attempts so far",
        r"Failed to trigger (?:or complete )?checkpoint (?P<checkpoint_id>\d+)"
        rf" for job (?P<job_id>{_ID})",
    ),
    # CheckpointCoordinator
    _kind(
        "restored",
        "Restoring job ",
        rf"Restoring job (?P<job_id>{_ID}) from (?:latest valid checkpoint: )?"
        r"(?:Checkpoint|Savepoint) (?P<checkpoint_id>\d+)",
    ),
    # JobMaster / DefaultScheduler
    _kind(
        "restart",
        "to recover the failed task ",
        r"(?P<value>\d+) tasks? (?:will|should) be restarted to recover the failed task"
        r" (?P<execution>[0-9a-f_]+)",
    ),
    _kind(
        "global-failure",
        "Trying to recover from a global failure",
        r"(?P<value>Trying to recover from a global failure)",
    ),
    # AdaptiveScheduler in the state Restarting, after a failure or for rescaling
    _kind("rescheduled", "Restarting job.", r"^(?P<value>Restarting job)\.$"),
    _kind(
        "job-submitted",
        "Starting execution of job ",
        rf"Starting execution of job '?(?P<job_name>.{{0,2000}}?)'? \((?P<job_id>{_ID})\)",
    ),
    # DefaultExecutionGraphBuilder (1.15+): maps execution attempt IDs to a job
    _kind(
        "execution-graph",
        "Created execution graph ",
        rf"Created execution graph (?P<key>{_ID}) for job (?P<job_id>{_ID})",
    ),
    # Dispatcher
    _kind(
        "job-terminal",
        "reached terminal state ",
        rf"Job (?P<job_id>{_ID}) reached (?:globally )?terminal state (?P<to_state>[A-Z]+)",
    ),
    _kind(
        "job-submitted",
        "Submitting job ",
        rf"Submitting job '?(?P<job_name>.{{0,2000}}?)'? \((?P<job_id>{_ID})\)",
    ),
    # EnvironmentInformation.logEnvironmentInfo
    _kind(
        "version",
        "(Version: ",
        r"Starting (?P<value>.{1,200}?) \(Version: (?P<key>[^,\s)]+)",
    ),
    # GlobalConfiguration
    _kind(
        "config",
        "oading configuration property: ",
        r"Loading configuration property: (?P<key>[^,\s]+), (?P<value>.*)",
    ),
    _kind(
        "config",
        "oading dynamic configuration property: ",
        r"Loading dynamic configuration property: (?P<key>[^,\s]+), (?P<value>.*)",
    ),
    # RetryingRegistration, then TaskExecutor and JobMaster
    _kind(
        "resourcemanager-sought",
        "Could not resolve ResourceManager address",
        r"Could not resolve ResourceManager address (?P<value>[^\s,]+)",
    ),
    # ConnectionUtils, which selects the network interface by connecting to the JobManager
    _kind(
        "resourcemanager-sought",
        "Failed to connect from address",
        r"Failed to connect from address '(?P<value>[^']{1,300})': ",
    ),
    _kind(
        "resourcemanager-found",
        "Successful registration at resource manager",
        r"Successful registration at resource manager (?P<value>\S+)",
    ),
    _kind(
        "resourcemanager-found",
        "successfully registered at ResourceManager",
        r"successfully registered at (?P<value>ResourceManager)",
    ),
    # ActiveResourceManager; before 1.12, YarnResourceManager and KubernetesResourceManager
    _kind(
        "taskmanager-requested",
        "Requesting new worker with resource spec",
        r"Requesting new (?P<value>worker) with resource spec",
    ),
    _kind(
        "taskmanager-requested",
        "Requesting new TaskExecutor container with resources",
        r"Requesting new TaskExecutor (?P<value>container) with resources",
    ),
    _kind(
        "taskmanager-requested",
        "Requesting new TaskManager pod with",
        r"Requesting new TaskManager (?P<value>pod) with",
    ),
    # RpcService, which logs this about ten times at the startup of every process
    _kind(
        "endpoint-started",
        "Starting RPC endpoint for ",
        r"Starting RPC endpoint for (?P<value>org\.apache\.flink\.\S+)",
    ),
    # TaskManagerRunner
    _kind(
        "taskmanager-started",
        "Starting TaskManager with ResourceID: ",
        r"Starting TaskManager with ResourceID: (?P<resource_id>\S+)",
    ),
    # ResourceManager, JobMaster
    _kind(
        "taskmanager-registered",
        "Registering TaskManager with ResourceID ",
        r"Registering TaskManager with ResourceID (?P<resource_id>\S+)",
    ),
    _kind(
        "taskmanager-lost",
        "Closing TaskExecutor connection ",
        r"Closing TaskExecutor connection (?P<resource_id>\S+) because: (?P<value>.*)",
    ),
    _kind(
        "taskmanager-heartbeat-lost",
        "eartbeat of TaskManager with id ",
        r"[Hh]eartbeat of TaskManager with id (?P<resource_id>\S+) timed out",
    ),
    # SignalHandler
    _kind(
        "signal",
        "RECEIVED SIGNAL ",
        r"RECEIVED SIGNAL (?P<key>\d+): (?P<value>\w+)",
    ),
    # Shutdown hooks of a TaskManager, which run in any order: AbstractBlobCache, TaskExecutor,
    # TaskExecutorLocalStateStoresManager, FileChannelManagerImpl
    _kind(
        "process-closing",
        "Shutting down BLOB cache",
        r"^(?P<value>Shutting down BLOB cache)",
    ),
    _kind(
        "process-closing",
        "Stopping TaskExecutor ",
        r"^Stopping (?P<value>TaskExecutor) \S+",
    ),
    _kind(
        "process-closing",
        "Shutting down TaskExecutorLocalStateStoresManager",
        r"^Shutting down (?P<value>TaskExecutorLocalStateStoresManager)",
    ),
    _kind(
        "process-closing",
        "FileChannelManager removed spill file directory",
        r"^(?P<value>FileChannelManager) removed spill file directory",
    ),
    # TaskManager and JobManager before 1.5, after a RECEIVED SIGNAL line
    _kind(
        "signal",
        "because it was killed from the outside",
        r"This JVM will shut down because it was (?P<value>killed from the outside)",
    ),
    # JobManager before 1.5
    _kind(
        "job-state",
        "Status of job ",
        rf"Status of job (?P<job_id>{_ID}) \((?P<job_name>.{{0,2000}}?)\) changed to"
        r" (?P<to_state>[A-Z]+)",
    ),
    # ClusterEntrypoint.closeClusterService / shutDownAsync
    _kind(
        "cluster-shutdown",
        "down with application status ",
        r"Shutting (?P<key>\S+) down with application status (?P<to_state>[A-Z]+)",
    ),
    # ClusterEntrypoint.onFatalError
    _kind(
        "entrypoint-fatal",
        "Fatal error occurred in the cluster entrypoint",
        r"(?P<value>Fatal error occurred in the cluster entrypoint)",
    ),
    # Components with leader election, such as the Dispatcher and the ResourceManager
    _kind(
        "leadership",
        " leadership",
        r"(?P<value>(?:was )?(?:granted|revoked|lost) leadership|leadership was revoked)",
    ),
)

KINDS: tuple[str, ...] = (*dict.fromkeys(kind.name for kind in _TABLE), *banner.KINDS)
_BY_LITERAL = tuple((kind.literal, kind) for kind in _TABLE)
LITERALS: tuple[str, ...] = (
    *dict.fromkeys(kind.literal for kind in _TABLE),
    operator_status.LITERAL,
    *banner.LITERALS,
)

# The regexes search only this many characters of a message, to limit their running time.
_MAX_MESSAGE_CHARS = 8192


def parse_lifecycle(message: str, logger: str | None = None) -> Lifecycle | None:
    """The lifecycle that ``message`` reports, or ``None`` if it reports none.

    ``logger`` is not used, because some layouts and pasted excerpts contain no logger.
    """
    del logger
    for literal, kind in _BY_LITERAL:
        if literal in message:
            found = kind.pattern.search(message[:_MAX_MESSAGE_CHARS])
            if found is not None:
                return _lifecycle(kind.name, found.groupdict())
    return banner.parse_banner(message)


def attempt_of_execution(execution: str | None) -> int | None:
    """The 0-based attempt number in an execution attempt ID, or ``None`` if it contains none.

    Since Flink 1.16, the ID is ``<graph>_<vertex>_<index>_<n>``. Earlier IDs contain no number.
    """
    if execution is None:
        return None
    parts = execution.split("_")
    return int(parts[-1]) if len(parts) == 4 and parts[-1].isdigit() else None


_TASK_IN_TEXT = re.compile(
    r"(?:for operator|[Tt]ask name with subtask ?:|[Tt]ask:?|for task) "
    r"(?P<task>(?!to\b)[^\n]{1,500}?)"
    r" \((?P<subtask>\d{1,6})/(?P<parallelism>\d{1,6})\)(?:#(?P<attempt>\d{1,9}))?"
)


def task_in_text(text: str) -> tuple[str, int, int, int | None] | None:
    """The task, 1-based subtask, parallelism, and 0-based attempt that a message mentions.

    ``None`` if the message mentions no task; the attempt is ``None`` if it is missing. An example
    is ``Could not complete snapshot 7 for operator Totals -> Sink (1/2)#0``.
    """
    if "/" not in text:
        return None
    found = _TASK_IN_TEXT.search(text[:_MAX_MESSAGE_CHARS])
    if found is None:
        return None
    attempt = found["attempt"]
    return (
        found["task"],
        int(found["subtask"]),
        int(found["parallelism"]),
        int(attempt) if attempt is not None else None,
    )


_JOB_ID = re.compile(rf"\bjob(?:_|[ -]?[iI][dD]|)[=: ]*(?P<job_id>{_ID})\b")


def job_id_in_text(text: str) -> str | None:
    """The job ID in a message ("... for job <id>", "job_<id>_op_..."), or ``None``."""
    start = text.find("job", 0, _MAX_MESSAGE_CHARS)
    while start >= 0:
        found = _JOB_ID.match(text, start, _MAX_MESSAGE_CHARS)
        if found is not None:
            return found["job_id"]
        start = text.find("job", start + 1, _MAX_MESSAGE_CHARS)
    return None


def _lifecycle(kind: str, groups: dict[str, str | None]) -> Lifecycle:
    get = groups.get
    execution = get("execution")
    attempt = _number(get("attempt") or get("attempt_"))
    return Lifecycle(
        kind,
        get("job_id"),
        get("job_name"),
        get("task"),
        _number(get("subtask")),
        _number(get("parallelism")),
        attempt_of_execution(execution) if attempt is None else attempt,
        get("from_state"),
        get("to_state"),
        _number(get("checkpoint_id")),
        get("resource_id"),
        get("key") if execution is None else execution,
        get("value"),
    )


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
