"""Documents that explain failures, and texts by users who report one."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_triage.local import Options, run_local
from flink_triage.logs.detect.documents import is_document
from flink_triage.logs.detect.prose import is_of_collector, mentions_failure

HEAP = "java.lang.OutOfMemoryError: Java heap space"
DOCUMENTS = {
    "a runbook": f"# Runbook\n\nIf a task reports `{HEAP}`, raise the task heap.\n",
    "a manual": "How to read a restart\nWhen the cause is a HeartbeatTimeoutException, look at the"
    " network of the TaskManager. NoResourceAvailableException means that slots are missing.\n",
    "a change log": "Changes in 4.1\n- sinks no longer fail with ProducerFencedException\n"
    "- smaller batches, which keeps jobs clear of RecordTooLargeException\n",
    "options with comments": f"# exit when a task throws {HEAP}\n"
    "taskmanager.jvm-exit-on-oom: true\n# 10 min\nexecution.checkpointing.timeout: 20min\n",
    "a diff": "--- a/conf/config.yaml\n+++ b/conf/config.yaml\n@@ -1,2 +1,3 @@\n"
    f"+# {HEAP}\n+taskmanager.memory.task.heap.size: 2g\n",
    "source code": 'if (size > 9) {\n    throw new IllegalStateException("large: " + size);\n'
    '}\nLOG.error("Checkpoint {} of job {} expired before completing.", id, job);\n',
    "a table of messages": f"| message | meaning |\n|---|---|\n| `{HEAP}` | heap too small |\n",
    "a table of causes in Chinese": f"| 错误 | 可能原因 |\n|---|---|\n| `{HEAP}` | 内存不足 |\n",
    "an answer below a failure in bold": f"- **Application fails with {HEAP}**\n\n"
    "This happens when the heap is too small. Raise it.\n",
    "rules of alerts": "- alert: JobRestarts\n  expr: rate(flink_restarts[5m]) > 0\n"
    "  annotations:\n    summary: Exceeded checkpoint tolerable failure threshold\n",
    "constants of an enum": 'public enum Reason {\n  EXPIRED(false, "Checkpoint expired before'
    ' completing."),\n  DECLINED(false, "Checkpoint was declined."),\n',
    "a shell script": 'count=$(grep -v "AskTimeoutException" $LOGS \\\n'
    f'  | grep -v "{HEAP}" \\\n  | grep -v "RejectedExecutionException")\n'
    'if [ $count -gt 0 ]; then\n  echo "errors"\nfi\n',
    "frequent questions": f"## Q1: The job reports {HEAP}, what should I do?\nRaise the heap.\n"
    "## Q2: The job reports an error Cannot read binlog, what should I do?\nCaused by: a restart.\n"
    "## Q3: How long are binlogs kept?\nSeven days.\n",
    "release notes": "".join(
        f"<li>[<a href='https://example.org/FLINK-{n}'>FLINK-{n}</a>] - Fails with {HEAP}\n</li>\n"
        for n in range(5)
    ),
    "a reference in Chinese": f"## {HEAP}\n\u8be5\u5f02\u5e38\n"
    "## OutOfMemoryError: Metaspace\n\u8bf7\n## IllegalConfigurationException\n\u8bf7\n",
    "symptoms and solutions": '### Storage\n\n**Symptoms:**\n- "No space left on device"\n\n'
    "**Solutions:**\n1. Clean old checkpoints\n",
    "a runbook with sections": "# Title: Failing checkpoints\n\n## Symptoms\n\n- Flink logs:\n"
    "  - `Checkpoint expired before completing`\n  - `Failed to trigger checkpoint`\n\n"
    "## Root Cause Analysis (RCA)\n\n1. **Storage**: permission errors or throttling.\n\n"
    "## Resolution Steps\n\n1. Confirm checkpoint failures in JobManager logs.\n",
    "labels before text": f"#### {HEAP}\n**Cause:** Large batches exhaust the heap.\n"
    "**Recommendation:** Reduce the batch size.\n",
    "a page with sections and an exception": "How Do I Submit a Job\n=====\n\nSymptom\n-----\n"
    "\nThe job remains in the starting state. The following error information is displayed:\n\n"
    f".. code-block::\n\n   {HEAP}\n\nSolution\n-----\n\n#. Raise the heap.\n",
    "a manual with headings": "## Recovery\nThe operator restarts a failed job.\n"
    "## Unhealthy jobs\nA missing deployment can lead to a loss of state.\n"
    "## Rollback\nSee above.\n",
    "symptoms and solutions in Chinese": "### 坑 2：超时\n\n**症状**：`Checkpoint expired"
    " before completing` 日志刷屏。\n\n**原因**：写入慢。\n\n**解法**：\n调大超时。\n",
    "solutions in Korean": "#### 1. 연결 실패\n```\nError: Failed to send data to Kafka\n```\n"
    f"**해결책:**\n- 네트워크\n\n#### 2. OOM\n```\nError: {HEAP}\n```\n**해결책:**\n- 메모리\n",
    "causes and solutions in German": f"## {HEAP}\n\n**Ursache:** Der Heap ist zu klein.\n\n"
    "**Lösung:** Mehr Speicher.\n",
    "a test with a chain of calls": "        assertThatThrownBy(\n                        () ->\n"
    "                                env.setUp(\n                                        writers,\n"
    "                                        100,\n"
    "                                        writers * channels))\n"
    "                .isInstanceOf(IOException.class)\n"
    f'                .hasMessageContaining("{HEAP}");\n',
    "a runbook with advice behind dashes": "## Runbook: Flink and Kafka\n\n"
    f"1. `{HEAP}` - raise the heap, then restart the job.\n"
    "2. `OutOfOrderSequenceException` - upgrade the broker.\n",
    "a changelog in Chinese": f"# 更新日志\n\n## 3.4.0\n- 修复: 作业偶尔报错 `{HEAP}`\n",
    "a test plan": "Test plan, release 4.7\n"
    "TC-12: send one record of 2 MB; expect RecordTooLargeException.\n",
    "release notes in Portuguese": f"Notas da versão 5.0\n- acabou-se o erro {HEAP}\n",
    "questions about messages": f"### What does `{HEAP}` mean?\n\nThe heap is too small.\n\n"
    "### What does `Connection refused: localhost:8081` mean in `flink run`?\n\nNo JobManager.\n",
    "questions and answers": f"Q: the job prints {HEAP}\nA: raise the heap.\n",
}
REPORTS = {
    "a question": f"When we double the batch size we get {HEAP}. What can I do?\n",
    "listed frames": "The implementation of the Loader is not serializable.\n"
    " * org.apache.flink.api.java.ClosureCleaner.clean(ClosureCleaner.java:164)\n"
    " * org.apache.flink.api.java.ClosureCleaner.clean(ClosureCleaner.java:69)\n",
    "a title": "## Flink to Kafka: `SaslAuthenticationException: Authentication failed`\n",
    "a question about one message": f"## What does `{HEAP}` mean?\nOur job failed with it.\n",
    "a report below the name of a runbook": f"We followed the runbook, still {HEAP}\n",
    "a report that mentions a runbook": f"See the troubleshooting page.\nOur job failed: {HEAP}\n",
    "a table of events": f"| time | message |\n|---|---|\n| 10:01 | `{HEAP}` |\n",
    "a throwable": "java.io.IOException: this binlog is no longer available on the server\n",
    "a trace below a condition": f"If I start it:\n{HEAP}\n\tat com.acme.Shop.main(Shop.java:7)\n",
    "a cause in a sentence": f"When it restarts the log usually says Caused by: {HEAP}\n",
    "a trace in a comment": f" * {HEAP}\n * \tat com.acme.Shop.main(Shop.java:7)\n"
    " * \tat com.acme.Shop.run(Shop.java:9)\n",
    "a template": f"**Describe the bug**\nThe job restarts with {HEAP}\n"
    "**Environment**\nFlink 1.17\n",
    "a template with sections": f"## Problem\nMy job fails with {HEAP}\n## Root cause analysis\n"
    "unknown\n## Remediation steps\nnone yet, please help\n",
    "a question in Chinese": f"## 问题\n我们的作业报错 {HEAP}\n## 原因\n未知\n## 解决方案\n求助\n",
    "words without a failure": "If the load grows, add TaskManagers.\n",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_explain_failures(name: str) -> None:
    assert is_document(DOCUMENTS[name].split("\n"))


@pytest.mark.parametrize("name", REPORTS)
def test_failure_reports_are_not_documents(name: str) -> None:
    assert not is_document(REPORTS[name].split("\n"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_is_not_a_log(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.log").write_text(DOCUMENTS[name])
    (incident,) = run_local([str(tmp_path)], Options()).incidents
    assert (incident.verdict, incident.diagnoses) == ("no-logs", ())


@pytest.mark.parametrize(
    ("text", "is_failure"),
    [
        ("the job crashed", True),
        ("our TaskManagers are OOMKilled every night", True),
        ("RecordTooLargeException, again", True),
        ("nine days without a single failure", False),
        ("no job crashed", False),
        ("checkpoints are fine", False),
        ('error: ""\n  state: RUNNING', False),
        ('{"failed": 0, "errors": []}', False),
        ('{"failed": 1, "errors": ["x"]}', True),
        ("error: no route to host", True),
        ("the rest: " + "org.apache.flink.Foo.bar(Foo.java:7) " * 3, True),
        ("see org.apache.flink.Foo.bar(Foo.java:7)", False),
        ("we raise heartbeat.timeout, all jobs run", False),
        ("the request hit a timeout", True),
        ("java.io.IOExeption to few bufers", True),
        ("see java.util.concurrent.Executors and org.acme.Expression", False),
    ],
)
def test_mentions_of_a_failure_are_recognized(text: str, is_failure: bool) -> None:
    assert mentions_failure(text) is is_failure


@pytest.mark.parametrize(
    ("text", "is_collectors"),
    [
        ('Error from server (NotFound): pods "jm-0" not found', True),
        ("tail: cannot open 'a.log' for reading: No such file or directory", True),
        ("bash: line 1: kubectl: command not found", True),
        ("$ kubectl logs tm-1 --previous\nError from server (BadRequest): not found", True),
        ("etl@edge-1:~$ journalctl -u flink\n-- No entries --\n", True),
        ("$ kubectl logs tm-1\nOutOfMemoryError: Metaspace", False),
        ("bash: jstack: command not found\nThe job fails every night.", False),
        ("error: a container name must be specified for pod jm-0", True),
        ("java.io.FileNotFoundException: /data/a (No such file or directory)", False),
        ("the job says: No such file or directory", False),
    ],
)
def test_collector_messages_are_recognized(text: str, is_collectors: bool) -> None:
    assert is_of_collector(text) is is_collectors


def test_log_of_a_failed_log_retrieval_is_not_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "2025-06-19 10:02:44,118 INFO client.DefaultNoHARMFailoverProxyProvider: Connecting to"
        " ResourceManager at rm-1/10.77.0.12:8032\n"
        "Can not find any log file matching the pattern: [ALL] for the application: a_1\n"
        "Can not find the logs for the application: a_1 with the appOwner: etl\n"
    )
    (incident,) = run_local([str(tmp_path)], Options()).incidents
    assert incident.verdict == "no-logs"
