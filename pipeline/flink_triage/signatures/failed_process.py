"""One event in, the process that failed out: often not the one that logged it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flink_triage.model import Process, Throwable
from flink_triage.signatures.event_text import EventText
from flink_triage.traces.packages import PROCESSES

_PROCESSES: tuple[Process, ...] = ("jobmanager", "taskmanager", "client")

# Flink's explanation of an OutOfMemoryError names the options of the process.
_OPTION = re.compile(r"'(?P<process>jobmanager|taskmanager)\.memory\.")
# Threads that only one of the processes has.
_THREAD = re.compile(
    r"(?P<jobmanager>jobmanager-|cluster-io-thread|Checkpoint Timer|flink-rest-server"
    r"|SourceCoordinator-|DispatcherRestEndpoint-|flink-scheduler-)"
    r"|(?P<taskmanager>taskexecutor-|taskmanager-io|Flink Netty (?:Server|Client)|OutputFlusher"
    r"|Legacy Source Thread|Source Data Fetcher|Kafka Fetcher|CloseableReaperThread)"
)
_UNCAUGHT = re.compile(
    r"Thread '(?P<thread>[^'\n]{1,200})'|in thread \"(?P<quoted>[^\"\n]{1,200})\""
)
# A task that failed did so in its TaskManager, whoever logs it.
_TASK_FAILED = re.compile(r"\(\d+/\d+\)[^\n]{0,300} switched from \w+ to FAILED")


def failed_process(text: EventText) -> Process | None:
    """By Flink's own words, the thread, the frames or the failed task; ``None`` where none tells.

    Of a chain the throwable nearest to the root cause decides, of its frames the outermost one: a
    JobManager prints the exceptions of TaskManagers with its own below them.
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
        # "operators.coordination" is the JobManager's, the rest of "operators" a TaskManager's.
        for process in _PROCESSES:
            if frame.class_name.startswith(PROCESSES[process]):
                return process
    return None


def _named(groups: Mapping[str, str | None]) -> Process | None:
    return next((process for process in _PROCESSES if groups.get(process)), None)
