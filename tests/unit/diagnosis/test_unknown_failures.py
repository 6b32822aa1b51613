"""Unknown failures are grouped, with the number of faults and the earliest known time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from test_incidents import (
    FULL,
    GRAPH,
    JOB,
    NPE,
    completed,
    completed_then,
    failed,
    line,
    loop,
    state,
)

from flink_triage.diagnosis.episodes.unknown_failures import group_unknown, merge_unknown
from flink_triage.signatures import similar

ODD = (
    "com.example.Odd: nobody knows\n"
    "\tat org.apache.flink.streaming.runtime.tasks.StreamTask.invoke(StreamTask.java:1)\n"
)


def test_first_seen_is_the_time_of_the_first_occurrence(diagnose, pack):
    again = failed(60, ODD, 1) + state(60, "RUNNING", "RESTARTING")
    text = completed_then(1, 4, failed(40, ODD) + state(40, "RUNNING", "RESTARTING"), again)
    (unknown,) = group_unknown(diagnose(standalonesession=text).unknown_faults, 5, pack)
    assert unknown.count == 2
    assert unknown.first_seen_at == datetime(2026, 11, 21, 5, 0, 40, tzinfo=UTC)


def test_merged_failure_keeps_the_earliest_known_time(diagnose, pack):
    text = completed_then(1, 4, failed(40, ODD) + state(40, "RUNNING", "RESTARTING"))
    (later,) = group_unknown(diagnose(standalonesession=text).unknown_faults, 5, pack)
    earlier = replace(later, first_seen_at=datetime(2026, 1, 1, tzinfo=UTC))
    timeless = replace(later, first_seen_at=None)
    (merged,) = merge_unknown([timeless, later, earlier], 5)
    assert (merged.count, merged.first_seen_at) == (3, earlier.first_seen_at)
    (merged,) = merge_unknown([timeless, timeless], 5)
    assert merged.first_seen_at is None


def test_fault_without_a_job_counts_once_among_several_jobs(diagnose, pack):
    other = "0" * 32
    jobs = (NPE, JOB, GRAPH), (FULL, other, "e" * 32)
    text = line(1, f"Created execution graph {GRAPH} for job {JOB}.")
    text += line(1, f"Created execution graph {'e' * 32} for job {other}.")
    for trace, job, graph in jobs:
        text += (completed(5, 4) + loop(trace, 2)).replace(JOB, job).replace(GRAPH, graph)
    text += line(12, "Something of nobody's", "ERROR") + ODD
    found = diagnose(standalonesession=text)
    assert len(found.incidents) == 2
    (unknown,) = group_unknown(found.unknown_faults, 5, pack)
    assert unknown.count == 1


def test_trace_cut_off_before_its_cause_is_named_by_the_thrown_class(diagnose, pack):
    text = (
        "2026-11-21 05:00:01\n"
        "java.lang.RuntimeException: Failed to frobnicate the bundle! INFO:root:Starting up.\n"
        "Traceback (most recent call last):\n"
        '  File "/venv/site-packages/pyflink/fn_execution/beam/beam_boot.py", line 1, in <module>\n'
        "    from apache_beam.runners.worker import bundle_processor\n"
    )
    (incident,) = diagnose(taskmanager=text).incidents
    assert incident.summary == (
        "No signature explains the first fault: java.lang.RuntimeException, cut off "
        "before its cause."
    )


KAFKA = (
    "org.apache.kafka.common.errors.ReplicaElectionException: "
    "This server is no leader for that topic-partition, the leader has moved\n"
    "\tat org.apache.kafka.clients.producer.internals.Sender.run(Sender.java:1)\n"
)


def test_an_unknown_failure_and_its_incident_name_the_closest_known_ones(diagnose, pack):
    found = diagnose(standalonesession=completed_then(1, 4, loop(KAFKA, 2)))
    (incident,) = found.incidents
    (unknown,) = group_unknown(found.unknown_faults, 5, pack)
    assert incident.verdict == "undetermined"
    assert incident.similar[0].signature == "kafka/not-leader"
    assert unknown.similar == incident.similar
    shown = {diagnosis.signature for diagnosis in incident.diagnoses}
    assert shown.isdisjoint(one.signature for one in incident.similar)


def test_an_error_without_a_trace_names_the_closest_known_ones_too(diagnose):
    message = "Kafka server is no leader for that topic-partition orders-3, the leader has moved"
    text = line(1, "Starting Kafka producer") + line(2, message, "ERROR")
    (incident,) = diagnose(standalonesession=text).incidents
    assert incident.verdict == "undetermined"
    assert [one.signature for one in incident.similar][:1] == ["kafka/not-leader"]


def test_diagnosed_failure_does_not_build_the_similarity_index(diagnose):
    similar._index_of.cache_clear()
    found = diagnose(standalonesession=completed_then(1, 4, loop(NPE, 2)))
    assert [incident.verdict for incident in found.incidents] == ["diagnosed"]
    assert found.incidents[0].similar == ()
    assert similar._index_of.cache_info().misses == 0
