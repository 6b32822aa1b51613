"""Typed, shortened, or quoted messages match like program output, but other prose does not."""

from __future__ import annotations

import json

import pytest
import yaml

from flink_triage.logs.formats.pasted_lines import whole_frame
from flink_triage.signatures.respelling import Respelling

NAMED = {
    "slips in a class name and a word": (
        "java.lang.OutOfMemmoryError: Metaspaec\n",
        "memory/oom-metaspace",
    ),
    "letters swapped within a sentence": (
        "our flink job fails: org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint"
        " tolerable failuer thresohld\n",
        "checkpoint/tolerable-threshold-exceeded",
    ),
    "slips on the second line, below a frameless header": (
        "flink prints\njava.util.concurrent.TimeoutException: Hearbeat of TaskManager with id"
        " a-1 timed out\n",
        "taskmanager/heartbeat-timeout",
    ),
    "a restore and its cause in one sentence": (
        "Flink: Could not restore keyed state backend, reason FileNotFoundException: No such file"
        " or directory: s3a://lake/ck/7a1e/shared/0d44\n",
        "checkpoint/file-missing-on-restore",
    ),
    "the status of a load in quotes": (
        "StarRocks load of the Flink job fails: Label Already Exists\n",
        "sink/load-label-exists",
    ),
    "a log that cannot be written, without a trace": (
        "2025-12-12T08:04:12.100418Z main ERROR Unable to write to stream /l/tm.log for appender"
        " RollingFile\n",
        "disk/log-not-writable",
    ),
}


@pytest.mark.parametrize(("text", "signature"), NAMED.values(), ids=NAMED)
def test_failures_described_in_prose_are_diagnosed(diagnose, text: str, signature: str) -> None:
    (incident,) = diagnose(question=text).incidents
    assert [d.signature for d in incident.diagnoses][:1] == [signature]
    assert incident.diagnoses[0].evidence[0].excerpt.split("\n")[-1] in text


CALM = {
    "slips, and nothing failed": "mantenance of flink is finnished, chekpoints are fine agian\n",
    "words that are near known ones": "Flink meetup: the Metaspade band plays at nine\n",
    "a method in a sentence": "Flink calls org.acme.Shop.open(Shop.java:12) once per subtask.\n",
}


@pytest.mark.parametrize("text", CALM.values(), ids=CALM)
def test_harmless_prose_is_not_a_failure(diagnose, text: str) -> None:
    assert [i.verdict for i in diagnose(note=text).incidents] == ["no-logs"]


FRAMES = {
    "org.apache.flink.runtime.taskmanager.Task.doRun(Task.java:746": "Task.java:746",
    "java.base/java.lang.Thread.run(Thread.java:829)": "Thread.java:829",
    "at org.apache.flink.runtime.rpc.akka.AkkaRpcActor.onReceive": "Unknown Source",
    "  at org.acme.Shop$1.lambda$open$0": "Unknown Source",
    "  at org.acme.Shop$1.lambda$open$0()": None,
    "\tat org.acme.Shop.open(Shop.scala": "Shop.scala",
    "- org.acme.Shop.open": "Unknown Source",
    "* org.acme.Shop.open(Shop.scala:12": "Shop.scala:12",
    "- org.acme.Shop": None,
    "at org.apache.flink.runtime.taskmanager.Task.doRun(Task.java:746)": None,
    "// called by org.acme.Shop.open(Shop.java:12)": None,
    "at org.acme.shop": None,
    "at Shop.open": None,
}


@pytest.mark.parametrize(("line", "source"), FRAMES.items())
def test_incomplete_frame_is_completed(line: str, source: str | None) -> None:
    whole = whole_frame(line)
    assert whole is None if source is None else whole.endswith(f"({source})")


def test_frames_alone_are_not_called_healthy(diagnose) -> None:
    lines = [line for line, source in FRAMES.items() if source == "Unknown Source"]
    (incident,) = diagnose(frames="\n".join(lines) + "\n").incidents
    assert incident.verdict == "undetermined"


def test_log4j_without_a_configuration_prints_a_record(diagnose) -> None:
    line = "ERROR StatusLogger No Log4j 2 configuration file found.\n"
    (incident,) = diagnose(out=line).incidents
    assert (incident.verdict, incident.first_fault.line) == ("undetermined", 1)


@pytest.mark.parametrize(
    ("text", "respelled"),
    [
        ("Exceded the treshold", "Exceeded the threshold"),
        ("TimeoutExeption", "TimeoutException"),
        (
            "Timeotu",
            "Timeotu",
        ),  # a swap of two letters is one typo; "Timeout" is not in this vocabulary
        ("threshold", "threshold"),
        ("thrsold", "thrsold"),  # two typos are too many for a short word
        ("format", "format"),  # both "formal" and "formats" are similar
    ],
)
def test_unique_near_word_is_corrected(text: str, respelled: str) -> None:
    known = Respelling(["Exceeded", "threshold", "TimeoutException", "formal", "formats"])
    assert known.respell(text) == respelled


def test_respelling_cost_is_linear_in_the_number_of_words() -> None:
    known = Respelling(["abcdefghijklmnopqrstuvwxyz"[:n] for n in range(6, 27)])
    assert known.respell("abcdeghijklmnopqrstvwxyz " * 2000).count(" ") == 2000


STATUS = """\
status:
  error: {error}
  jobManagerDeploymentStatus: READY
  jobStatus:
    jobId: 8c7e2f61b0d94a0f9d2b1c5d6e7f8091
    jobName: stock-levels
    state: {state}
  lifecycleState: {lifecycle}
"""
STATUSES = {
    "a job that runs": (('""', "RUNNING", "STABLE"), "healthy"),
    "no error": (("null", "FINISHED", "STABLE"), "healthy"),
    "an error": (("out of luck", "RUNNING", "STABLE"), "text-only"),
    "a job that does not run": (('""', "RECONCILING", "STABLE"), "no-logs"),
    "an upgrade that is not stable": (('""', "RUNNING", "DEPLOYED"), "no-logs"),
}


@pytest.mark.parametrize(("parts", "verdict"), STATUSES.values(), ids=STATUSES)
@pytest.mark.parametrize("is_json", [False, True], ids=["yaml", "json"])
def test_operator_status_determines_the_verdict(
    diagnose, parts: tuple[str, str, str], verdict: str, is_json: bool
) -> None:
    error, state, lifecycle = parts
    text = STATUS.format(error=error, state=state, lifecycle=lifecycle)
    if is_json:
        text = json.dumps(yaml.safe_load(text)) + "\n"
    (incident,) = diagnose(status=text).incidents
    assert incident.verdict == verdict
