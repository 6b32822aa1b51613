"""The Databricks bundle: its YAML against the fields of bundles, and its tasks as they run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import regex
import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "jobs" / "databricks.yml"
RESOURCES = sorted((ROOT / "jobs" / "resources").glob("*.yml"))
# Written down by hand from the schema that `databricks bundle schema` prints.
FIELDS = Path(__file__).with_name("bundle_fields.schema.json")
SCHEMA_VARIABLE = "FLINK_TRIAGE_BUNDLE_SCHEMA"
REFERENCE = re.compile(r"\$\{([^}]+)\}")
JOBS = ["flink_triage", "flink_triage_cluster"]
TARGETS = ["dev", "prod"]


def pattern(_: Any, wanted: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Bundles' patterns have classes that Python's own expressions lack."""
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


@pytest.fixture(scope="module")
def bundle() -> dict[str, Any]:
    """The bundle with what it includes, as the CLI merges them."""
    whole = load(BUNDLE)
    resources: dict[str, Any] = {}
    for path in RESOURCES:
        for kind, named in load(path)["resources"].items():
            resources.setdefault(kind, {}).update(named)
    return whole | {"resources": resources}


@pytest.mark.parametrize("path", [BUNDLE, *RESOURCES], ids=lambda path: path.name)
def test_every_field_is_one_that_bundles_have(path: Path) -> None:
    assert problems(load(path), json.loads(FIELDS.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", [BUNDLE, *RESOURCES], ids=lambda path: path.name)
def test_the_published_schema_takes_every_file(path: Path) -> None:
    """Its licence lets nobody ship it: it is taken from the CLI, or from a file."""
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
        pytest.param({"max_concurrent_runs": "one"}, "one", id="a word where a number belongs"),
        pytest.param({"tasks": [{}]}, "task_key", id="a task without its key"),
        pytest.param({"queue": {}}, "enabled", id="a queue that says nothing"),
        pytest.param(
            {"health": {"rules": [{"metric": "HEAT", "op": "GREATER_THAN", "value": 1}]}},
            "HEAT",
            id="a metric that no rule knows",
        ),
    ],
)
def test_a_wrong_field_is_told(
    bundle: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    job = bundle["resources"]["jobs"]["flink_triage"] | change
    found = problems(
        {"resources": {"jobs": {"flink_triage": job}}},
        json.loads(FIELDS.read_text(encoding="utf-8")),
    )
    assert [problem for problem in found if expected in problem]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("target", TARGETS)
def test_each_variable_has_a_value_in_each_target(bundle: dict[str, Any], target: str) -> None:
    named = {name for text in texts(bundle["resources"]) for name in REFERENCE.findall(text)}
    assert {name.split(".")[0] for name in named} == {"var"}
    given = {name for name, variable in bundle["variables"].items() if "default" in variable}
    given |= bundle["targets"][target]["variables"].keys()
    assert {name.removeprefix("var.") for name in named} <= given
    assert bundle["variables"].keys() == {name.removeprefix("var.") for name in named}


@pytest.mark.parametrize("name", JOBS)
def test_each_job_queues_is_watched_and_runs_hourly(bundle: dict[str, Any], name: str) -> None:
    job = bundle["resources"]["jobs"][name]
    assert (job["max_concurrent_runs"], job["queue"]) == (1, {"enabled": True})
    assert job["health"]["rules"][0]["metric"] == "RUN_DURATION_SECONDS"
    assert job["schedule"]["quartz_cron_expression"].split()[2] == "*"
    assert job["email_notifications"]["on_failure"]


def values_of(bundle: dict[str, Any], target: str, **own: str) -> dict[str, str]:
    defaults = {n: v["default"] for n, v in bundle["variables"].items() if "default" in v}
    return defaults | bundle["targets"][target]["variables"] | own


def parameters(bundle: dict[str, Any], name: str, values: dict[str, str]) -> Iterator[list[str]]:
    """Each task's parameters, in the order in which the tasks run."""
    for task in bundle["resources"]["jobs"][name]["tasks"]:
        wheel = task["python_wheel_task"]
        assert wheel["package_name"] == "flink_triage"
        yield [
            REFERENCE.sub(lambda found: values[found[1].removeprefix("var.")], word)
            for word in wheel["parameters"]
        ]


def entry_point(bundle: dict[str, Any]) -> Any:
    """The function that the tasks of both jobs name, by the metadata of the installed package."""
    tasks = [task for name in JOBS for task in bundle["resources"]["jobs"][name]["tasks"]]
    (name,) = {task["python_wheel_task"]["entry_point"] for task in tasks}
    (found,) = metadata.entry_points(group="console_scripts", name=name)
    return found.load()


def test_both_jobs_run_the_same(bundle: dict[str, Any]) -> None:
    values = values_of(bundle, "dev")
    first, second = (list(parameters(bundle, name, values)) for name in JOBS)
    assert first == second


def test_the_tasks_of_a_job_run_with_their_parameters(
    bundle: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a Spark that is there, as on Databricks, into tables of a schema."""
    from flink_triage.spark.session import get_session

    spark = get_session(master="local[2]")
    schema = "bundle"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} LOCATION '{tmp_path / 'tables'}'")
    logs = tmp_path / "volume" / "orders"
    recorded = ROOT / "tests/logs/operator/user-code-exception/npe-1.16.0/logs"
    shutil.copytree(recorded, logs, copy_function=shutil.copyfile)
    page = tmp_path / "report.html"
    places = {"input": str(logs), "report": str(page), "catalog": "spark_catalog", "schema": schema}
    run_task = entry_point(bundle)
    for words in parameters(bundle, JOBS[0], values_of(bundle, "prod", **places)):
        monkeypatch.setattr(sys, "argv", ["flink-triage-task", *words])
        assert run_task() is None
    said = capsys.readouterr().out
    assert "operator/user-code-exception" in said
    assert "operator/user-code-exception" in page.read_text(encoding="utf-8")
    assert spark.table(f"{schema}.diagnoses").count() > 0


def test_a_task_that_fails_raises(bundle: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What it returned would be ignored, and the run called a success."""
    for words, code in ((["report"], 2), (["what"], 2)):
        monkeypatch.setattr(sys, "argv", ["flink-triage-task", *words])
        with pytest.raises(Exception, match=f"ended with exit code {code}"):
            entry_point(bundle)()
