"""An inconclusive diagnosis lists the missing log, its host and time, and possible causes."""

from __future__ import annotations

from test_incidents import (
    FULL,
    GRAPH,
    THRESHOLD,
    completed_then,
    failed,
    line,
    loop,
    signatures,
    state,
)

TOO_LARGE = (
    "org.apache.kafka.common.errors.RecordTooLargeException: The message is 2097240 bytes when"
    " serialized which is larger than 1048576, which is the value of the max.request.size"
    " configuration.\n"
)
LOST = (
    "java.util.concurrent.TimeoutException: Heartbeat of TaskManager with id tm-7 timed out.\n"
    "\tat org.apache.flink.runtime.jobmaster.JobMaster$TaskManagerHeartbeatListener"
    ".notifyHeartbeatTimeout(JobMaster.java:1435)\n"
)


def test_a_symptom_names_the_log_that_is_missing_its_machine_and_time(diagnose):
    text = completed_then(1, 4, failed(40, LOST).replace("host:1 @ host", "tm-7 @ host-7"))
    incident = diagnose(standalonesession=text + state(40, "RUNNING", "RESTARTING")).incidents[0]
    first = incident.missing_evidence[0]
    assert "TaskManager tm-7" in first
    assert "2026-11-21 05:00:40 UTC" in first


UNNAMED = (
    "com.example.Odd: nobody knows\n\tat org.apache.flink.streaming.runtime.tasks.StreamTask"
    ".invoke(StreamTask.java:1)\n"
)


def test_taskmanager_log_that_reports_the_fault_is_not_missing(diagnose):
    text = completed_then(1, 4, failed(40, UNNAMED).replace("host:1 @ host", "tm-7 @ host-7"))
    seen = text + state(40, "RUNNING", "RESTARTING")
    reported = failed(40, UNNAMED).replace(" on host:1 @ host", "")
    alone = diagnose(standalonesession=seen).incidents[0]
    both = diagnose(standalonesession=seen, taskexecutor=reported).incidents[0]
    assert alone.missing_evidence[0].startswith("The log of TaskManager tm-7 up to")
    assert both.verdict == "undetermined"
    assert both.missing_evidence[0].startswith("The TaskManager log reports the fault")


def test_a_symptom_lists_what_is_known_to_cause_it_and_what_to_look_for(diagnose):
    text = completed_then(1, 4, state(10, "RUNNING", "RESTARTING") + THRESHOLD)
    incident = diagnose(standalonesession=text).incidents[0]
    assert signatures(incident) == ["checkpoint/tolerable-threshold-exceeded"]
    possible = {other.signature: other for other in incident.other_causes}
    assert {other.standing for other in incident.other_causes} == {"possible"}
    assert "No space left on device" in possible["disk/full"].look_for


def test_diagnosed_cause_has_no_missing_evidence(diagnose):
    incident = diagnose(standalonesession=completed_then(1, 4, loop(FULL, 2))).incidents[0]
    assert (incident.missing_evidence, incident.other_causes) == ((), ())


def test_unexplained_rival_is_listed_as_considered(diagnose):
    other = failed(22, TOO_LARGE, 3) + state(22, "RUNNING", "FAILED")
    text = completed_then(1, 4, loop(FULL, 3), other)
    incident = diagnose(standalonesession=text).incidents[0]
    assert signatures(incident)[0] == "disk/full"
    rivals = [other for other in incident.other_causes if other.standing == "considered"]
    assert [rival.signature for rival in rivals] == ["kafka/record-too-large"]
    assert "It occurred once; the first diagnosis occurred 3 times." in rivals[0].reason


def test_changes_of_all_diagnoses_are_one_patch(diagnose):
    text = completed_then(1, 4, state(10, "RUNNING", "RESTARTING") + THRESHOLD)
    incident = diagnose(standalonesession=text + loop(FULL, 3, 20)).incidents[0]
    keys = [(change.scope, change.key) for change in incident.config]
    asked = {
        (change.scope, change.key) for d in incident.diagnoses for change in d.remediation.config
    }
    assert len(keys) == len(set(keys))
    assert set(keys) == asked


def host(second: float, subtask: int, trace: str) -> str:
    execution = f"{GRAPH}_8eeed16b661251f13cfc6a3c5e75c420_{subtask - 1}_0"
    failed = f"Totals ({subtask}/4)#0 ({execution}) switched from RUNNING to FAILED with failure"
    return line(second, f"{failed} cause: {trace}".rstrip("\n"), "WARN", "o.a.f.r.taskmanager.Task")


def test_one_host_and_subtask_of_many_are_named_in_the_reasons(diagnose, observe):
    ready = line(1, "Starting TaskManager (Version: 1.16.0, Scala: 2.12)")
    logs = {
        "u-taskexecutor-0-host_a": ready + host(10, 2, FULL),
        "u-taskexecutor-0-host_b": ready,
        "u-taskexecutor-0-host_c": ready,
    }
    reasons = " ".join(diagnose(observe(**logs)).incidents[0].diagnoses[0].reasons)
    assert "seen on 1 of 3 hosts with TaskManagers, host_a: check its disk" in reasons
    assert "seen only in subtask 2 of 4 of Totals" in reasons


COORDINATOR = (
    "org.apache.flink.util.FlinkException: Global failure triggered by OperatorCoordinator for"
    " 'stream_write: orders' (operator cbc357ccb763df2852fee8c4fc7d55f2).\n"
    "\tat org.apache.hudi.sink.StreamWriteOperatorCoordinator.start(A.java:1)\n"
)
ACTION = (
    "Caused by: org.apache.hudi.exception.HoodieException: Executor executes action [commits the"
    " instant 20240618064120870] error\n\t... 6 more\n"
)


def test_coordinator_failure_asks_for_the_jobmanager_log(diagnose):
    incident = diagnose(pasted=COORDINATOR).incidents[0]
    assert signatures(incident) == ["job/operator-coordinator-failed"]
    assert incident.missing_evidence[0].startswith("The JobManager log")


def test_frames_inside_a_symptom_rank_its_possible_causes(diagnose):
    incident = diagnose(pasted=COORDINATOR + ACTION).incidents[0]
    assert signatures(incident)[0] == "job/operator-coordinator-failed"
    causes = [other.signature for other in incident.other_causes]
    assert {name.partition("/")[0] for name in causes[:3]} == {"hudi"}
    plain = diagnose(pasted=COORDINATOR).incidents[0].other_causes
    assert {other.signature.partition("/")[0] for other in plain} != {"hudi"}


def test_rejected_statement_asks_for_the_client_output(diagnose):
    text = "org.apache.flink.table.api.TableException: no one names this\n"
    incident = diagnose(pasted=text).incidents[0]
    assert incident.verdict == "undetermined"
    assert incident.missing_evidence[0].startswith("The complete output of the client, or in")


def test_wrapper_without_a_cause_names_the_log_to_check(diagnose):
    empty = (
        "org.apache.flink.client.deployment.ClusterDeploymentException: Could not deploy Yarn job"
        " cluster.\n\tat org.apache.flink.yarn.YarnClusterDescriptor.deploy(A.java:1)\n"
        "Caused by: org.apache.flink.yarn.YarnClusterDescriptor$YarnDeploymentException: The YARN"
        " application unexpectedly switched to state FAILED during deployment.\n"
        "\tat org.apache.flink.yarn.YarnClusterDescriptor.startAppMaster(A.java:2)\n"
    )
    incident = diagnose(pasted=empty).incidents[0]
    assert incident.verdict == "undetermined"
    assert incident.summary.startswith("YARN deployment failed (")
    assert "; the log does not contain the cause" in incident.summary
    assert "yarn logs -applicationId" in incident.missing_evidence[0]
    assert not any("TaskManagers" in place for place in incident.missing_evidence)
    named = diagnose(pasted=f"{empty}Caused by: com.acme.NoOneNamesThisException: x\n").incidents[0]
    assert "com.acme.NoOneNamesThisException" in named.summary
    assert not any("yarn logs" in place for place in named.missing_evidence)


def test_step_to_read_the_cause_is_left_out_if_the_trace_has_none(diagnose, pack):
    wrapper = pack.signatures["operator/chained-exception"]
    empty = (
        "org.apache.flink.streaming.runtime.tasks.ExceptionInChainedOperatorException: Could not"
        " forward element to next operator\n"
        "\tat org.apache.flink.streaming.runtime.tasks.ChainingOutput.pushToOperator(C.java:99)\n"
    )
    missing = diagnose(pasted=empty).incidents[0].missing_evidence
    assert missing[0] == wrapper.remediation.steps[0]
    assert wrapper.remediation.trace_step not in missing


def test_a_trace_without_its_beginning_is_reported_as_a_trace(diagnose):
    text = "\tat org.apache.flink.A.b(A.java:1)\n\tat org.apache.flink.A.c(A.java:2)\n"
    assert diagnose(pasted=text).incidents[0].summary.startswith("The first fault is a stack trace")
