"""Tests the Databricks bundle: its fields, the CLI rules, and the execution of its tasks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import regex
import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from flink_triage.cli.main import build_parser
from flink_triage.cli.scheduler_task import values_of
from flink_triage.cli.worker_checks import check_worker
from flink_triage.local import Options, run_local
from tests.e2e import databricks_cli
from tests.e2e.databricks_cli import Config

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "jobs" / "databricks.yml"
RESOURCES = sorted((ROOT / "jobs" / "resources").glob("*.yml"))
RECORDED = ROOT / "tests/logs/operator/user-code-exception/npe-1.16.0/logs"
# Written by hand, based on the schema that `databricks bundle schema` prints.
FIELDS = Path(__file__).with_name("bundle_fields.schema.json")
SCHEMA_VARIABLE = "FLINK_TRIAGE_BUNDLE_SCHEMA"
JOBS = ["flink_triage", "flink_triage_cluster"]
SMOKE = "flink_triage_smoke"
TARGETS = ["dev", "prod"]
PLACES = {"input": "/Volumes/ops/flink/logs", "catalog": "ops"}
# The only variables that a user must set.
GIVEN = {
    "dev": PLACES,
    "prod": PLACES
    | {
        "notify": "oncall",
        "oncall": "flink-oncall",
        "service_principal": "6a1f0c2e-0000-4000-8000-5d3c0b9a7e11",
    },
}


def pattern(_: Any, wanted: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Patterns in the bundle schema use character classes that Python's ``re`` does not support."""
    if isinstance(value, str) and not regex.search(wanted, value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


Fields = validators.extend(Draft202012Validator, {"pattern": pattern})


def load(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def problems(document: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Fields(schema).iter_errors(document)
    ]


@pytest.fixture(params=TARGETS)
def bundle(request: pytest.FixtureRequest) -> Config:
    """Returns the merged bundle of each target, with the variables that the user must set."""
    return databricks_cli.load(BUNDLE, request.param, GIVEN[request.param])


def job_named(config: Config, name: str) -> Config:
    return dict(config["resources"]["jobs"][name])


@pytest.mark.parametrize("path", [BUNDLE, *RESOURCES], ids=lambda path: path.name)
def test_every_field_is_one_that_bundles_have(path: Path) -> None:
    assert problems(load(path), json.loads(FIELDS.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", [BUNDLE, *RESOURCES], ids=lambda path: path.name)
def test_the_published_schema_takes_every_file(path: Path) -> None:
    """The schema cannot be redistributed under its license. It comes from the CLI or a file."""
    named = os.environ.get(SCHEMA_VARIABLE)
    if named:
        text = Path(named).read_text(encoding="utf-8")
    elif shutil.which("databricks"):
        printed = ["databricks", "bundle", "schema"]
        text = subprocess.run(printed, capture_output=True, text=True, check=True).stdout
    else:
        pytest.skip(f"no databricks command, and {SCHEMA_VARIABLE} names no schema")
    assert problems(load(path), json.loads(text)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"schedules": {}}, "schedules", id="an unknown field of a job"),
        pytest.param({"max_concurrent_runs": "one"}, "one", id="a word instead of a number"),
        pytest.param({"tasks": [{}]}, "task_key", id="a task without its key"),
        pytest.param({"queue": {}}, "enabled", id="an empty queue setting"),
        pytest.param(
            {"health": {"rules": [{"metric": "HEAT", "op": "GREATER_THAN", "value": 1}]}},
            "HEAT",
            id="an unknown metric",
        ),
    ],
)
def test_wrong_field_is_reported(change: dict[str, Any], expected: str) -> None:
    job = load(BUNDLE.parent / "resources/serverless.job.yml")["resources"]["jobs"]["flink_triage"]
    job |= change
    found = problems(
        {"resources": {"jobs": {"flink_triage": job}}},
        json.loads(FIELDS.read_text(encoding="utf-8")),
    )
    assert [problem for problem in found if expected in problem]


def test_the_cli_takes_the_bundle(bundle: Config) -> None:
    assert databricks_cli.problems(bundle) == []


@pytest.mark.parametrize("target", TARGETS)
def test_required_variables_have_no_default(target: str) -> None:
    """The bundle contains no placeholder for an address, catalog, or principal of the user."""
    missing = databricks_cli.problems(databricks_cli.load(BUNDLE, target, {}))
    required = "no value assigned to required variable"
    assert {f"variables.{name}: {required}" for name in GIVEN[target]} <= set(missing)
    text = BUNDLE.read_text(encoding="utf-8")
    assert re.findall(r"\S+@\S+", text) == []


def test_every_variable_is_used(bundle: Config) -> None:
    used = {
        name
        for _, text in databricks_cli.texts({key: bundle[key] for key in bundle})
        for name in databricks_cli.REFERENCE.findall(text)
        if name.startswith("var.")
    }
    assert {f"var.{name}" for name in bundle["variables"]} == used


def test_tables_are_written_to_the_schema_that_is_created(bundle: Config) -> None:
    assert not misplaced_tables(bundle)


def misplaced_tables(bundle: Config) -> list[str]:
    """Returns the tasks whose --catalog and --schema are not those of the created schema."""
    deployed = databricks_cli.as_deployed(bundle)
    created = deployed["resources"]["schemas"]["tables"]
    wanted = [f"--catalog={created['catalog_name']}", f"--schema={created['name']}"]
    return [
        f"{name}: {words[0]}"
        for name in JOBS
        for words in commands(deployed, name)
        if [word for word in words if word.startswith(("--catalog", "--schema"))] != wanted
    ]


def test_development_is_apart_from_production() -> None:
    dev, prod = (
        databricks_cli.as_deployed(databricks_cli.load(BUNDLE, target, GIVEN[target]))
        for target in TARGETS
    )
    assert dev["resources"]["schemas"]["tables"]["name"] == "dev_ada_l_flink_triage"
    assert prod["resources"]["schemas"]["tables"]["name"] == "flink_triage"
    page = "--report=/Volumes/ops/dev_ada_l_flink_triage/reports/flink-triage.html"
    assert page in list(commands(dev, "flink_triage"))[1]
    assert statuses(dev) == {"flink_triage": "PAUSED", "flink_triage_cluster": "PAUSED"}
    assert statuses(prod) == {"flink_triage": "UNPAUSED", "flink_triage_cluster": "PAUSED"}


def statuses(deployed: Config) -> dict[str, str]:
    jobs = deployed["resources"]["jobs"]
    return {name: jobs[name]["schedule"]["pause_status"] for name in JOBS}


Change = Callable[[Config], None]


def changed(place: str, value: Any) -> Change:
    """Returns a function that changes a field. ``place`` contains keys and indexes, with dots."""

    def change(config: Config) -> None:
        *path, last = (int(key) if key.isdigit() else key for key in place.split("."))
        inner: Any = config
        for key in path:
            inner = inner[key]
        inner[last] = value

    return change


TASKS = "resources.jobs.flink_triage.tasks"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            changed("targets.prod.permissions.1.level", "CAN_MANAGE_RUN"),
            "permissions: CAN_MANAGE_RUN is not one of CAN_MANAGE, CAN_VIEW, CAN_RUN",
            id="a job permission level for the whole target",
        ),
        pytest.param(
            changed(
                "resources.jobs.flink_triage.permissions",
                [{"level": "CAN_RUN", "group_name": "oncall"}],
            ),
            "jobs.flink_triage.permissions: CAN_RUN is not allowed here",
            id="a target permission level for a job",
        ),
        pytest.param(
            changed("resources.volumes.reports.name", "${var.volume}"),
            "resources.volumes.reports.name: ${var.volume} does not resolve",
            id="an undeclared variable",
        ),
        pytest.param(
            changed("resources.volumes.reports.schema_name", "${resources.schemas.other.name}"),
            "resources.volumes.reports.schema_name: ${resources.schemas.other.name} does not "
            "resolve",
            id="an undefined resource",
        ),
        pytest.param(
            changed("resources.volumes.reports.name", "${var.schema"),
            "resources.volumes.reports.name: '${var.schema' is no reference that the CLI reads",
            id="an unterminated reference",
        ),
        pytest.param(
            changed("targets.prod.variables", {"mail": "x"}),
            "variables.mail: the target sets a variable that is not declared",
            id="a variable that only the target sets",
        ),
        pytest.param(
            changed("targets.prod.run_as.user_name", "ada"),
            "run_as: exactly one identity must be specified",
            id="two identities",
        ),
        pytest.param(
            changed("targets.prod.workspace.root_path", "/Workspace/Shared/flink-triage"),
            "workspace.root_path: is writable by all workspace users",
            id="a folder that all users can write to",
        ),
        pytest.param(
            changed("targets.prod.workspace", {}),
            "workspace.root_path: must be set for mode production",
            id="production without a root path",
        ),
        pytest.param(
            changed(f"{TASKS}.0.environment_key", "other"),
            "jobs.flink_triage.ingest: environment_key is not defined",
            id="an unknown environment",
        ),
        pytest.param(
            changed(f"{TASKS}.1.condition_task.left", "{{tasks.report.values.is_new}}"),
            "jobs.flink_triage.is_new.condition_task.left: {{tasks.report.values.is_new}} does "
            "not resolve",
            id="a value from a later task",
        ),
        pytest.param(
            changed("resources.jobs.flink_triage.parameters", []),
            "jobs.flink_triage.ingest.python_wheel_task.parameters[1]: {{job.parameters.source}} "
            "does not resolve",
            id="an undeclared job parameter",
        ),
    ],
)
def test_values_that_the_cli_rejects_are_found(change: Change, problem: str) -> None:
    raw = databricks_cli.read(BUNDLE)
    change(raw)
    assert problem in databricks_cli.problems(
        databricks_cli.merge_target(raw, "prod", GIVEN["prod"])
    )


def test_a_schema_by_its_variable_is_another_one_in_development() -> None:
    raw = databricks_cli.read(BUNDLE)
    parameters = raw["resources"]["jobs"]["flink_triage"]["parameters"]
    next(one for one in parameters if one["name"] == "schema")["default"] = "${var.schema}"
    found = {
        target: misplaced_tables(databricks_cli.merge_target(raw, target, GIVEN[target]))
        for target in TARGETS
    }
    tasks = ("run", "report", "maintain")
    assert found == {"dev": [f"flink_triage: {task}" for task in tasks], "prod": []}


@pytest.mark.parametrize("path", RESOURCES, ids=lambda path: path.name)
def test_a_file_named_for_a_kind_holds_one_of_it(path: Path) -> None:
    """config/loader/process_include.go: validateSingleResourceDefined."""
    kind = path.name.split(".")[-2]
    ((plural, named),) = load(path)["resources"].items()
    assert (plural, len(named)) == (f"{kind}s", 1)


@pytest.mark.parametrize("name", JOBS)
def test_each_job_queues_is_watched_and_runs_hourly(bundle: Config, name: str) -> None:
    job = job_named(bundle, name)
    assert (job["max_concurrent_runs"], job["queue"]) == (1, {"enabled": True})
    assert job["health"]["rules"][0]["metric"] == "RUN_DURATION_SECONDS"
    assert job["schedule"]["quartz_cron_expression"].split()[2] == "*"
    assert job["email_notifications"]["on_failure"]


@pytest.mark.parametrize("name", [*JOBS, SMOKE])
def test_a_wrong_argument_is_tried_once(bundle: Config, name: str) -> None:
    """On serverless compute, the platform retries failed tasks unless this is disabled."""
    for task in wheel_tasks(bundle, name):
        assert task["max_retries"] == 0
        assert task.get("disable_auto_optimization", False) == ("environment_key" in task)


@pytest.mark.parametrize("name", JOBS)
def test_conditions_read_values_that_the_task_leaves(bundle: Config, name: str) -> None:
    result = run_local([str(RECORDED)], Options())
    left = values_of(result, datetime.now(UTC)).keys() | {"exit_code"}
    for task in job_named(bundle, name)["tasks"]:
        for _, text in databricks_cli.texts(task):
            for reference in databricks_cli.DYNAMIC.findall(text):
                if reference.startswith("tasks."):
                    assert reference.split(".")[3] in left


def wheel_tasks(config: Config, name: str) -> list[Config]:
    return [task for task in job_named(config, name)["tasks"] if "python_wheel_task" in task]


def commands(deployed: Config, name: str, **given: str) -> Iterator[list[str]]:
    """Yields the arguments of each wheel task, in order. ``given`` overrides job parameters."""
    job = job_named(deployed, name)
    values = {one["name"]: str(one["default"]) for one in job.get("parameters", [])} | given
    for task in wheel_tasks(deployed, name):
        assert task["python_wheel_task"]["package_name"] == "flink_triage"
        yield [
            databricks_cli.DYNAMIC.sub(
                lambda found: values[found[1].removeprefix("job.parameters.")], word
            )
            for word in task["python_wheel_task"]["parameters"]
        ]


def entry_point(bundle: Config) -> Any:
    """Returns the function that all tasks name, found in the metadata of the installed package."""
    tasks = [task for name in (*JOBS, SMOKE) for task in wheel_tasks(bundle, name)]
    (name,) = {task["python_wheel_task"]["entry_point"] for task in tasks}
    (found,) = metadata.entry_points(group="console_scripts", name=name)
    return found.load()


def test_both_jobs_run_the_same(bundle: Config) -> None:
    deployed = databricks_cli.as_deployed(bundle)
    first, second = (list(commands(deployed, name)) for name in JOBS)
    assert first == second


def test_run_now_can_rematch(bundle: Config) -> None:
    words = next(commands(databricks_cli.as_deployed(bundle), JOBS[0], source="--rematch"))
    arguments = build_parser().parse_args(words)
    assert (arguments.command, arguments.rematch, arguments.paths) == ("run", True, None)


def test_the_tasks_of_the_jobs_run_with_their_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As on Databricks, the tasks use an existing Spark session and write to tables in a schema."""
    from flink_triage.spark.runtime.session import get_session

    spark = get_session(master="local[2]")
    logs = tmp_path / "volume" / "orders"
    shutil.copytree(RECORDED, logs, copy_function=shutil.copyfile)
    given = GIVEN["prod"] | {"catalog": "spark_catalog", "input": str(logs), "schema": "bundle"}
    deployed = databricks_cli.as_deployed(databricks_cli.load(BUNDLE, "prod", given))
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS bundle LOCATION '{tmp_path / 'tables'}'")
    page = tmp_path / "report.html"
    run_task = entry_point(deployed)
    for words in [*commands(deployed, SMOKE), *commands(deployed, JOBS[0], report=str(page))]:
        monkeypatch.setattr(sys, "argv", ["flink-triage-task", *words])
        assert run_task() is None
    output = capfd.readouterr().out
    assert re.findall(r"^(\w+) +(?:worker|input|diagnosis|memory):", output, re.M) == ["ok"] * 4
    assert "operator/user-code-exception" in output
    assert "operator/user-code-exception" in page.read_text(encoding="utf-8")
    assert spark.table("bundle.diagnoses").count() > 0
    dangling = tmp_path / "gone" / "jobmanager.log"
    dangling.parent.mkdir()
    dangling.symlink_to(tmp_path / "absent")
    unreadable = check_worker(spark, str(dangling.parent))
    assert [check.name for check in unreadable if not check.is_ok] == ["input"]


def test_a_task_that_fails_raises(bundle: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Databricks would ignore a returned exit code and report the run as successful."""
    for words, code in ((["report"], 2), (["what"], 2)):
        monkeypatch.setattr(sys, "argv", ["flink-triage-task", *words])
        with pytest.raises(Exception, match=f"ended with exit code {code}"):
            entry_point(bundle)()
