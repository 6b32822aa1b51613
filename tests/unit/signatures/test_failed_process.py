from __future__ import annotations

import pytest

from flink_triage.model import Process
from flink_triage.signatures import Matcher, builtin_pack_directory, load_pack
from flink_triage.signatures.samples import event_from_text
from flink_triage.traces import extract

PACK = load_pack([builtin_pack_directory()])
HEAD = "2026-05-10 10:00:00,000 ERROR"
HEAP = "java.lang.OutOfMemoryError: Java heap space"

PROCESSES: list[tuple[str, str, Process | None]] = [
    ("a task that failed, as the JobManager logs it",
     f"{HEAD} org.apache.flink.runtime.executiongraph.ExecutionGraph [] - Map (2/4) (1234_1_0) "
     f"switched from RUNNING to FAILED on tm-2:6122-0b1c @ tm-2 (dataPort=36117).\n{HEAP}",
     "taskmanager"),
    ("frames of a task under the logger of a coordinator",
     f"{HEAD} org.apache.hudi.sink.StreamWriteOperatorCoordinator [] - Reset the event\n{HEAP}\n"
     "\tat com.acme.Buffer.put(Buffer.java:3)\n"
     "\tat org.apache.flink.runtime.taskmanager.Task.run(Task.java:562)",
     "taskmanager"),
    ("a handler of the REST API, below the cause",
     f"{HEAD} com.acme.X [] - Unhandled exception.\n"
     "java.util.concurrent.CompletionException: java.lang.OutOfMemoryError: Metaspace\n"
     "\tat org.apache.flink.runtime.webmonitor.handlers.JarRunHandler.run(JarRunHandler.java:1)\n"
     "Caused by: java.lang.OutOfMemoryError: Metaspace\n"
     "\tat java.lang.ClassLoader.defineClass1(Native Method)",
     "jobmanager"),
    ("a thread of the JobManager",
     f"{HEAD} org.apache.flink.util.FatalExitExceptionHandler [] - FATAL: Thread "
     f"'jobmanager-io-thread-8' produced an uncaught exception. Stopping the process...\n{HEAP}",
     "jobmanager"),
    ("Flink's explanation names the options",
     f"{HEAD} com.acme.X [] - failed\n{HEAP}. In the first case, 'jobmanager.memory.heap.size' can "
     "be used to increase the amount of available heap memory.",
     "jobmanager"),
    ("a coordinator of an operator is the JobManager's",
     f"{HEAD} com.acme.X [] - failed\n{HEAP}\n\tat org.apache.flink.runtime.operators.coordination"
     ".OperatorCoordinatorHolder.start(OperatorCoordinatorHolder.java:1)",
     "jobmanager"),
    ("nothing tells", f"{HEAD} com.acme.X [] - failed\n{HEAP}\n\tat com.acme.X.y(X.java:1)", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "process"), [case[1:] for case in PROCESSES], ids=[case[0] for case in PROCESSES]
)
def test_the_process_that_failed_is_not_the_one_that_logged(
    text: str, process: Process | None
) -> None:
    event = event_from_text(text)
    message, trace = extract(event.message, event.continuation)
    other: Process = "jobmanager" if process == "taskmanager" else "taskmanager"
    found = Matcher(PACK).match(event, message, trace, other)
    memory = next(match for match in found if match.signature.startswith("memory/oom"))
    assert memory.captures.get("process") == process
