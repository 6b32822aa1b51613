"""Differences between the last healthy start and the last start before a failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from flink_triage.diagnosis import diagnose_deployment, diagnose_incrementally
from flink_triage.local import Options, run_local
from flink_triage.model import Incident, ObservedChange
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS
from tests.unit.diagnosis.test_incidents import GRAPH, JOB, NPE, completed, failed, line, state
from tests.unit.diagnosis.test_orderly_shutdown import ENTRYPOINT, RUNNER, sigterm

LOGS = Path(__file__).resolve().parents[2] / "logs"
LABELLED = {
    path.parent.relative_to(LOGS).as_posix(): label["changes"]
    for path in sorted(LOGS.rglob("label.yaml"))
    if "changes" in (label := yaml.safe_load(path.read_text()))
}
JOB_ID = JOB
DAY = 24 * 3600
OTHER_JOB = "52ffdc5a46a56a132aa72a05f7658935"
JOBS = {"ad": JOB_ID, "be": OTHER_JOB}
JAVA = "OpenJDK 64-Bit Server VM - Debian - 17/17.0.15+6-Debian-1deb12u1"
JARS = ("flink-dist-1.18.1.jar", "orders-functions-1.4.1.jar", "job.jar")
CONFIG = {
    "jobmanager.memory.process.size": "1100m",
    "parallelism.default": "2",
    "rest.port": "18081",
    "state.checkpoints.dir": "file:///srv/flink/ck",
}

Changed = tuple[str, str, str | None, str | None]


def start(
    second: float,
    *options: str,
    version: str = "1.18.1",
    java: str = JAVA,
    jars: tuple[str, ...] = JARS,
    process: str = "StandaloneSessionClusterEntrypoint",
    **config: str | None,
) -> str:
    """The startup banner and configuration of a process, worded as in the recorded logs."""
    logger = RUNNER if process == "TaskManager" else ENTRYPOINT
    effective = {**CONFIG, **{key.replace("__", "."): value for key, value in config.items()}}
    messages = [
        f" Starting {process} (Version: {version}, Scala: 2.12, Rev:a8c8b1c, Date:2023-12-19)",
        f" JVM: {java}",
        " JVM Options:",
        *(f"    {option}" for option in ("-Xmx549453824", "-XX:+UseG1GC", *options)),
        " Program Arguments:",
        "    -D",
        "    jobmanager.memory.heap.size=549453824b",
        f" Classpath: {':'.join(f'/opt/flink/lib/{jar}' for jar in jars)}::/opt/flink/conf",
    ]
    text = "".join(line(second, message, logger=logger) for message in messages)
    printed = (
        line(
            second + 0.4,
            f"Loading configuration property: {key}, {value}",
            logger="org.apache.flink.configuration.GlobalConfiguration",
        )
        for key, value in effective.items()
        if value is not None
    )
    return text + "".join(printed)


def runs(second: float, number: int = 1, job: str = JOB_ID) -> str:
    return state(second, "CREATED", "RUNNING", job) + completed(second + 5, number, job)


def fails(second: float, job: str = JOB_ID) -> str:
    return failed(second, NPE) + state(second, "RUNNING", "FAILED", job)


def changed(incident: Incident) -> list[Changed]:
    return [(change.what, change.name, change.before, change.after) for change in incident.changes]


def changes_of(diagnose, **files: str) -> list[Changed]:
    (incident,) = diagnose(**files).incidents
    return changed(incident)


def test_changes_before_a_failure_are_found() -> None:
    assert len(LABELLED) == 5
    for name, expected in LABELLED.items():
        result = run_local([str(LOGS / name)], Options())
        (incident,) = result.incidents
        found = [
            dict(zip(("what", "name", "before", "after"), one, strict=True))
            for one in changed(incident)
        ]
        assert found == expected, name
        assert incident.changes_left_out == 0


@pytest.mark.parametrize("name", ["healthy", "ha", "tls", "rpc"])
def test_healthy_single_start_and_unchanged_logs_have_no_changes(name: str) -> None:
    result = run_local([str(LOGS / name)], Options())
    assert [i.deployment for i in result.incidents if i.changes] == []


def test_a_change_names_both_starts(diagnose) -> None:
    log = start(0) + runs(10) + sigterm(20) + start(40, version="1.19.0") + fails(60)
    (incident,) = diagnose(jobmanager=log).incidents
    (change,) = incident.changes
    lines = log.split("\n")
    for process_start in (change.healthy_start, change.failing_start):
        assert process_start.process == "jobmanager"
        assert "Starting Standalone" in lines[process_start.line - 1]
    assert change.healthy_start.line < change.failing_start.line
    assert str(change.healthy_start.at) == "2026-11-21 05:00:00+00:00"
    assert str(change.failing_start.at) == "2026-11-21 05:00:40+00:00"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param({}, [], id="no change"),
        pytest.param(
            {"version": "1.19.0", "jars": ("flink-dist-1.19.0.jar", *JARS[1:])},
            [("flink-version", "Flink", "1.18.1", "1.19.0")],
            id="Flink and its JARs",
        ),
        pytest.param(
            {"java": "OpenJDK 64-Bit Server VM - Debian - 11/11.0.20+8"},
            [("java-version", "Java", JAVA, "OpenJDK 64-Bit Server VM - Debian - 11/11.0.20+8")],
            id="Java",
        ),
        pytest.param(
            {"jars": ("flink-dist-1.18.1.jar", "orders-functions-2.0-SNAPSHOT.jar", "udf.jar")},
            [
                ("jar", "job.jar", "job.jar", None),
                ("jar", "orders-functions", "1.4.1", "2.0-SNAPSHOT"),
                ("jar", "udf.jar", None, "udf.jar"),
            ],
            id="JARs",
        ),
        pytest.param(
            {"jars": ("all-in-one.jar",)},
            [
                ("jar", "all-in-one.jar", None, "all-in-one.jar"),
                ("jar", "flink-dist", "1.18.1", None),
                ("jar", "job.jar", "job.jar", None),
                ("jar", "orders-functions", "1.4.1", None),
            ],
            id="all JARs",
        ),
        pytest.param(
            {"jars": (*JARS, "orders-functions-1.3.0.jar", "log4j-1.2-api-2.17.1.jar")},
            [
                ("jar", "log4j-1.2-api", None, "2.17.1"),
                ("jar", "orders-functions", "1.4.1", "1.3.0, 1.4.1"),
            ],
            id="a JAR in two versions",
        ),
        pytest.param(
            {"parallelism__default": None, "state__backend__type": "rocksdb"},
            [
                ("configuration", "parallelism.default", "2", None),
                ("configuration", "state.backend.type", None, "rocksdb"),
            ],
            id="options",
        ),
        pytest.param(
            {"jobmanager__memory__process__size": "2g", "jobmanager__memory__heap__size": "9b"},
            [("configuration", "jobmanager.memory.process.size", "1100m", "2g")],
            id="memory, without derived values",
        ),
    ],
)
def test_changes(diagnose, later: dict[str, object], expected: list[Changed]) -> None:
    log = start(0) + runs(10) + sigterm(20) + start(40, **later) + fails(60)
    assert changes_of(diagnose, jobmanager=log) == expected


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        pytest.param("rest.port", "18081", "20000", id="port"),
        pytest.param("jobmanager.rpc.address", "10-0-0-7.flink", "10-0-0-8.flink", id="address"),
        pytest.param("taskmanager.resource-id", "tm-1", "tm-2", id="ID"),
        pytest.param(
            "io.tmp.dirs",
            "/yarn/application_1700000000000_0001/container_e07_1700000000000_0001_01_000002",
            "/yarn/application_1700000000000_0002/container_e07_1700000000000_0002_01_000001",
            id="container folder",
        ),
        pytest.param(
            "execution.savepoint.path",
            "s3://sp/savepoint-a1b2c3-0f1e2d3c4b5a",
            "s3://sp/savepoint-b2c3d4-1e2d3c4b5a6f",
            id="savepoint",
        ),
        pytest.param(
            "java.security.auth.login.config",
            "/opt/jaas-17557774784642927121.conf",
            "/opt/jaas-8302951774784642927.conf",
            id="temporary file",
        ),
        pytest.param("kafka.servers", "10.1.0.7:9092,b:1", "10.1.0.9:9092,b:1", id="host"),
    ],
)
def test_container_specific_values_are_not_changes(
    diagnose, key: str, before: str, after: str
) -> None:
    name = key.replace(".", "__")
    log = start(0, **{name: before}) + runs(10) + sigterm(20) + start(40, **{name: after})
    assert changes_of(diagnose, jobmanager=log + fails(60)) == []


def test_options_of_the_jvm(diagnose) -> None:
    before = start(0, "-XX:MaxGCPauseMillis=200", "-Duser.timezone=UTC", "-Dlog.file=/log/a.log")
    after = start(
        40,
        "-XX:-UseG1GC",
        "-Duser.timezone=CET",
        "-Dlog.file=/log/b.log",
        "-Dparallelism.default=4",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-javaagent:/opt/agent.jar",
    )
    assert changes_of(diagnose, jobmanager=before + runs(10) + sigterm(20) + after + fails(60)) == [
        # Dynamic properties in the program arguments are printed like JVM options.
        ("configuration", "parallelism.default", None, "4"),
        ("jvm-option", "--add-opens=java.base/java.lang", None, "ALL-UNNAMED"),
        ("jvm-option", "-Duser.timezone", "UTC", "CET"),
        ("jvm-option", "-XX:MaxGCPauseMillis", "200", None),
        ("jvm-option", "-XX:UseG1GC", "on", "off"),
        ("jvm-option", "-javaagent:/opt/agent.jar", None, "on"),
    ]


def test_options_set_in_the_configuration_are_reported_once(diagnose) -> None:
    given = "-XX:MaxGCPauseMillis=50 -XX:+UseZGC -Duser.timezone=CET"
    after = start(40, *given.split(), env__java__opts__all=given)
    log = start(0) + runs(10) + sigterm(20) + after + fails(60)
    assert changes_of(diagnose, jobmanager=log) == [
        ("configuration", "env.java.opts.all", None, given)
    ]


def test_a_secret_is_masked_and_its_change_unseen(diagnose) -> None:
    before = start(0, "-Djavax.net.ssl.keyStorePassword=hunter2abc", s3__secret_key="AKabc123xyz")
    after = start(40, "-Djavax.net.ssl.keyStorePassword=other9xyzzy", s3__secret_key="ZZtop999qqq")
    log = before + runs(10) + sigterm(20) + after + fails(60)
    assert changes_of(diagnose, jobmanager=log) == []
    added = start(40, "-Djavax.net.ssl.keyStorePassword=other9xyzzy")
    ((_, name, _, value),) = changes_of(
        diagnose, jobmanager=start(0) + runs(10) + sigterm(20) + added + fails(60)
    )
    assert name == "-Djavax.net.ssl.keyStorePassword"
    assert value is not None
    assert value.startswith("[REDACTED")


NEW = start(40, version="1.19.0")
# A symptom, which ranks below the cause in the log of the new cluster.
LOST = failed(
    38,
    "org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id tm-1 is no longer"
    " reachable.\n\tat org.apache.flink.runtime.jobmaster.JobMaster$X.notify(J.java:1299)\n",
) + state(38, "RUNNING", "RESTARTING")
LINES_OF_NEW = NEW.splitlines(keepends=True)
NEWER = [("flink-version", "Flink", "1.18.1", "1.19.0")]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"jobmanager": NEW + fails(60)}, [], id="only one start"),
        pytest.param(
            {"jobmanager": start(0) + sigterm(20) + NEW + fails(60)}, [], id="no job ran before"
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(1) + NEW + start(50, version="1.19.0") + fails(60)},
            NEWER,
            id="the last healthy start is not the previous start",
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(1) + LOST + NEW + fails(60)},
            NEWER,
            id="a fault of the old cluster during its replacement",
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(1), "jobmanager-new": NEW + fails(60)},
            NEWER,
            id="another file",
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(10) + sigterm(20) + NEW + runs(50, 2) + fails(DAY)},
            NEWER,
            id="a failure within a day",
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(10) + sigterm(20) + NEW + runs(50, 2) + fails(DAY + 60)},
            [],
            id="a failure after a healthy day",
        ),
        pytest.param(
            {
                "jobmanager": start(0)
                + state(5, "CREATED", "RUNNING")
                + line(200, "Something to note", "WARN")
                + start(240, version="1.19.0")
                + fails(260)
            },
            NEWER,
            id="a job that ran without checkpoints",
        ),
        pytest.param(
            {
                "jobmanager": start(0)
                + state(5, "CREATED", "RUNNING")
                + state(20, "RUNNING", "CANCELED")
                + line(200, "Something to note", "WARN")
                + start(240, version="1.19.0")
                + fails(260)
            },
            [],
            id="a job that ran only briefly",
        ),
        pytest.param(
            {
                "jobmanager": start(0) + runs(10, job=OTHER_JOB) + completed(50, 2, OTHER_JOB),
                "jobmanager-new": NEW + fails(60),
            },
            [],
            id="two clusters in one folder",
        ),
        pytest.param(
            {
                "jobmanager": start(0) + runs(10),
                "taskmanager": start(1, process="TaskManager")
                + start(40, process="TaskManager", version="1.19.0"),
                "jobmanager.log": fails(60),
            },
            NEWER,
            id="a TaskManager without a JobManager",
        ),
        pytest.param(
            {
                "jobmanager": start(0) + runs(10) + start(40, state__backend__type="rocksdb"),
                "taskmanager": start(1, process="TaskManager")
                + start(41, process="TaskManager", state__backend__type="rocksdb")
                + fails(60),
            },
            [("configuration", "state.backend.type", None, "rocksdb")],
            id="output of all processes is reported once",
        ),
        pytest.param(
            {"jobmanager": start(0) + runs(10) + "".join(LINES_OF_NEW[:10]) + fails(60)},
            NEWER,
            id="missing lines of a truncated start are not changes",
        ),
        pytest.param(
            {
                "jobmanager": start(0)
                + runs(10)
                + NEW
                + line(
                    300,
                    "Loading configuration property: state.backend.type, rocksdb",
                    logger="org.apache.flink.configuration.GlobalConfiguration",
                )
                + fails(360)
            },
            NEWER,
            id="a configuration that a job loads later does not belong to the process",
        ),
    ],
)
def test_which_starts_are_compared(diagnose, files: dict[str, str], expected) -> None:
    assert changes_of(diagnose, **files) == expected


def test_the_parallelism_of_a_job_that_is_submitted_again(diagnose) -> None:
    def running(second: float, of: int, task: str = "Totals", graph: str = "ad") -> str:
        execution = f"{graph * 16}_{'8e' * 16}_0_0"
        return line(
            second,
            f"Created execution graph {graph * 16} for job {JOBS[graph]}.",
        ) + line(second, f"{task} (1/{of}) ({execution}) switched from INITIALIZING to RUNNING.")

    def submitted(second: float, job: str) -> str:
        return line(second, f"Submitting job 'orders' ({job}).")

    before = start(0) + submitted(5, JOB_ID) + running(6, 2) + running(6, 1, "Sink") + runs(7)
    again = submitted(60, OTHER_JOB)
    end = state(71, "CREATED", "RUNNING", OTHER_JOB) + state(80, "RUNNING", "FAILED", OTHER_JOB)

    def after(*tasks: tuple[str, int]) -> list[Changed]:
        lines = "".join(running(61, of, task, "be") for task, of in tasks)
        fault = failed(80, NPE).replace("(1/2)", f"(1/{tasks[0][1]})").replace(GRAPH, "be" * 16)
        return changes_of(diagnose, jobmanager=before + again + lines + fault + end)

    assert after(("Totals", 2), ("Sink", 1)) == []
    assert after(("Totals", 8), ("Sink", 1)) == [("parallelism", "Totals", "2", "8")]
    assert after(("Totals", 8), ("Other", 3)) == [("parallelism", "orders", "2", "8")]


def test_further_changes_are_counted_and_long_values_cut(pack, observe) -> None:
    keys = {f"own__option{number}": "x" * 900 + str(number) for number in range(30)}
    log = start(0, **dict.fromkeys(keys, "x" * 900)) + runs(10) + start(40, **keys) + fails(60)
    settings = replace(DEFAULT_SETTINGS, max_changes=4)
    observations = observe(jobmanager=log)
    (incident,) = diagnose_deployment(
        "d", observations, pack, OptionTable.load(), settings
    ).incidents
    assert incident.changes_left_out == 26
    assert [change.name for change in incident.changes] == [
        f"own.option{number}" for number in (0, 1, 10, 11)
    ]
    first = incident.changes[0]
    assert first.after is not None
    assert first.after.startswith("…")
    assert first.after.endswith("x0")
    assert max(len(first.after), len(first.before or "")) <= DEFAULT_SETTINGS.max_excerpt_chars + 2


def test_a_later_run_compares_with_starts_that_it_does_not_read_again(pack, observe) -> None:
    """Runs that are hours and failures apart compare starts from the carried-over events."""
    hour = 3600
    parts = (
        start(0) + runs(10),
        completed(20 * hour, 2) + sigterm(20 * hour + 5),
        start(20 * hour + 60, version="1.19.0", state__backend__type="rocksdb"),
        runs(21 * hour, 3),
        fails(30 * hour),
        completed(30 * hour + 60, 4) + completed(50 * hour, 5),
        start(51 * hour, version="1.19.0") + runs(51 * hour + 60, 6) + fails(52 * hour),
        completed(70 * hour, 7),
    )
    options = OptionTable.load()
    whole = diagnose_deployment("d", observe(jobmanager="".join(parts)), pack, options)
    expected: dict[str, tuple[ObservedChange, ...]] = {
        incident.incident_id: incident.changes for incident in whole.incidents
    }
    assert sorted(len(changes) for changes in expected.values()) == [1, 2]
    observed = observe(jobmanager="".join(parts))
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    carried, closed, read = None, [], 0
    for end in ends:
        news = [o for o in observed if read <= o.event.offset < end]
        continued = diagnose_incrementally("d", carried, news, pack, options)
        if continued is None:
            # A changed option requires a full diagnosis.
            closed = []
            known = [o for o in observed if o.event.offset < end]
            continued = diagnose_incrementally("d", None, known, pack, options)
        assert continued is not None
        closed.append(continued.closed)
        carried, read = continued.carried, end
    found = [*closed, continued.open]
    assert {i.incident_id: i.changes for one in found for i in one.incidents} == expected


def test_a_run_without_checkpoints_is_seen_from_one_run_to_the_next(pack, observe) -> None:
    hour = 3600
    parts = (
        start(0) + state(10, "CREATED", "RUNNING"),
        line(40 * hour, "Something to note", "WARN"),
        start(50 * hour, jars=(*JARS, "udf.jar")) + fails(50 * hour + 60),
    )
    observed = observe(jobmanager="".join(parts))
    carried = None
    end = 0
    for part in parts:
        begin, end = end, end + len(part)
        news = [o for o in observed if begin <= o.event.offset < end]
        continued = diagnose_incrementally("d", carried, news, pack, OptionTable.load())
        assert continued is not None
        carried = continued.carried
    (incident,) = continued.open.incidents
    assert changed(incident) == [("jar", "udf.jar", None, "udf.jar")]
