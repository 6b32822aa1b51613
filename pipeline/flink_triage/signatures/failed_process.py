"""Determines the process that failed, which often is not the process that logged the event."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flink_triage.model import Process, Throwable
from flink_triage.signatures.event_text import EventText
from flink_triage.traces.packages import PROCESSES

_PROCESSES: tuple[Process, ...] = ("jobmanager", "taskmanager", "client")

# Flink's explanation of an OutOfMemoryError mentions the memory options of the failed process.
_OPTION = re.compile(r"'(?P<process>jobmanager|taskmanager)\.memory\.")
# Threads that exist in only one type of process.
_THREAD = re.compile(
    r"(?P<jobmanager>jobmanager-|cluster-io-thread|Checkpoint Timer|flink-rest-server"
    r"|SourceCoordinator-|DispatcherRestEndpoint-|flink-scheduler-)"
    r"|(?P<taskmanager>taskexecutor-|taskmanager-io|Flink Netty (?:Server|Client)|OutputFlusher"
    r"|Legacy Source Thread|Source Data Fetcher|Kafka Fetcher|CloseableReaperThread)"
)
_UNCAUGHT = re.compile(
    r"Thread '(?P<thread>[^'\n]{1,200})'|in thread \"(?P<quoted>[^\"\n]{1,200})\""
)
# A task fails in its TaskManager, regardless of the process that logs the failure.
_TASK_FAILED = re.compile(r"\(\d+/\d+\)[^\n]{0,300} switched from \w+ to FAILED")


def failed_process(text: EventText) -> Process | None:
    """The process according to Flink's message, the thread, the stack frames, or the failed task.

    In a cause chain, the throwable nearest to the root cause takes precedence. Among its frames,
    the outermost one takes precedence, because a JobManager prints the frames of TaskManager
    exceptions above its own. ``None`` if nothing identifies the process.
    """
    for throwable in (t for _, t in text.chain):
        option = _OPTION.search(throwable.message)
        if option is not None:
            return "jobmanager" if option["process"] == "jobmanager" else "taskmanager"
    by_thread = _of_thread(text)
    if by_thread is not None:
        return by_thread
    for _, throwable in text.chain:
        by_frames = _of_frames(throwable)
        if by_frames is not None:
            return by_frames
    return "taskmanager" if _TASK_FAILED.search(text.message.text) else None


def _of_thread(text: EventText) -> Process | None:
    uncaught = _UNCAUGHT.search(text.whole.text)
    name = (uncaught["thread"] or uncaught["quoted"]) if uncaught else text.event.thread
    found = _THREAD.match(name) if name else None
    return _named(found.groupdict()) if found else None


def _of_frames(throwable: Throwable) -> Process | None:
    for frame in reversed(throwable.frames):
        # "operators.coordination" runs in the JobManager, the rest of "operators" in a TaskManager.
        for process in _PROCESSES:
            if frame.class_name.startswith(PROCESSES[process]):
                return process
    return None


def _named(groups: Mapping[str, str | None]) -> Process | None:
    return next((process for process in _PROCESSES if groups.get(process)), None)
