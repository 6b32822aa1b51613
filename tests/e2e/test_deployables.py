"""Checks the manifests, the DAG, and the collector configurations as far as possible offline."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from flink_triage import __version__
from flink_triage.cli.main import build_parser
from flink_triage.logs.inputs.files import InputFile, deployment_of

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"
CRONJOB = JOBS / "kubernetes" / "cronjob.yaml"
APPLICATION = JOBS / "kubernetes" / "scheduled-spark-application.yaml"
CONTAINERFILE = JOBS / "kubernetes" / "Containerfile"

# The environment failed, or the warehouse was locked by another run.
RETRIED = {4, 5}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def container() -> Any:
    pod = load(CRONJOB)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod["containers"][0]


def words_of(path: Path) -> list[str]:
    """Returns the arguments of ``run``."""
    if path == CRONJOB:
        script = container()["args"][0].replace("\\\n", " ")
        return shlex.split(script.partition("flink-triage ")[2].partition("\n")[0])
    return [str(word) for word in load(path)["spec"]["template"]["arguments"]]


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a folder for fake programs and puts it first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def stand_in(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("hour", "code", "commands"),
    [
        pytest.param("00", 0, ["run", "maintain"], id="the first run of a day"),
        pytest.param("17", 0, ["run"], id="any other run"),
        pytest.param("00", 2, ["run"], id="a failed run"),
    ],
)
def test_the_pod_runs_and_maintains_in_turn(
    stand_ins: Path, tmp_path: Path, hour: str, code: int, commands: list[str]
) -> None:
    said = tmp_path / "said"
    stand_in(stand_ins, "date", f"echo {hour}")
    stand_in(stand_ins, "flink-triage", f"printf '%s\\n' \"$*\" >> {said}; exit {code}")
    assert container()["command"] == ["tini", "--", "sh", "-ec"]
    done = subprocess.run(["sh", "-ec", *container()["args"]], check=False)
    assert done.returncode == code
    lines = said.read_text(encoding="utf-8").splitlines()
    assert [line.partition(" ")[0] for line in lines] == commands
    assert lines[0].split() == words_of(CRONJOB)
    for line in lines:
        build_parser().parse_args(line.split())


def test_a_pod_is_not_started_again_for_a_lasting_error() -> None:
    policy = load(CRONJOB)["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]
    codes = policy["rules"][0]["onExitCodes"]["values"]
    assert set(codes).isdisjoint(RETRIED)
    assert policy["rules"][0]["onExitCodes"]["containerName"] == container()["name"]
    assert set(codes) >= {1, 2, 3}


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_takes_the_cron_job(version: str) -> None:
    kubernetes_validate.validate(load(CRONJOB), version, strict=True)


def test_a_wrong_cron_job_is_refused() -> None:
    job = load(CRONJOB)
    job["spec"]["concurrency"] = "Forbid"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.37", strict=True)


def test_the_spark_operator_takes_the_application() -> None:
    schema = json.loads(
        Path(__file__).with_name("scheduled_spark_application.schema.json").read_text("utf-8")
    )
    validator = Draft202012Validator(schema)
    application = load(APPLICATION)
    assert [error.message for error in validator.iter_errors(application)] == []
    application["spec"]["template"]["executors"] = {}
    assert not validator.is_valid(application)


@pytest.mark.parametrize("path", [CRONJOB, APPLICATION], ids=lambda path: path.name)
def test_the_command_takes_the_arguments(path: Path) -> None:
    arguments = build_parser().parse_args(words_of(path))
    assert (arguments.command, arguments.paths) == ("run", ["s3a://flink-logs/kubernetes"])


def test_the_image_build_imports_modules_and_calls_functions_that_exist() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    imported = re.findall(r"from (flink_triage[\w.]*) import (\w+); ([^\"]*)", text)
    assert imported
    for package, name, calls in imported:
        module = importlib.import_module(f"{package}.{name}")
        called = re.findall(rf"{name}\.(\w+)\(\)", calls)
        assert called
        assert [function for function in called if not hasattr(module, function)] == []


def test_images_are_of_this_release() -> None:
    images = {container()["image"], load(APPLICATION)["spec"]["template"]["image"]}
    assert {image.rpartition(":")[2] for image in images} == {__version__}


@pytest.mark.parametrize("manifest", [CRONJOB, APPLICATION], ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param("orders-5f7c9d6b8-x2x9z", "orders", id="a JobManager pod of a ReplicaSet"),
        pytest.param("orders-prod-taskmanager-1-12", "orders-prod", id="a native TaskManager pod"),
        pytest.param(
            "orders-5f7c9d6b8-x2x9z_flink_main-0123456789abcdef", "orders", id="a Fluent Bit tag"
        ),
        pytest.param("orders-prod", "orders-prod", id="a folder without a pod name"),
    ],
)
def test_pods_of_one_deployment_are_one(manifest: Path, folder: str, expected: str) -> None:
    group_by = build_parser().parse_args(words_of(manifest)).group_by
    root = "s3a://flink-logs/kubernetes"
    path = f"{root}/{folder}/20260101-000000-1.log.gz"
    file = InputFile(path, 1, datetime.now(UTC), root)
    assert deployment_of(file, group_by) == expected


class Later(Exception):
    """Stands in for ``AirflowException``."""


class Never(Later):
    """Stands in for ``AirflowFailException``, which Airflow does not retry."""


class Operator:
    """Stands in for an operator: records its arguments and the upstream operator."""

    def __init__(self, **given: Any) -> None:
        self.given, self.before = given, ""

    def __rshift__(self, other: Operator) -> Operator:
        other.before = self.given["task_id"]
        return other


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs the DAG file with stand-ins for Airflow and returns its globals."""
    modules = {
        "airflow": SimpleNamespace(),
        "airflow.sdk": SimpleNamespace(DAG=lambda **given: nullcontext()),
        "airflow.exceptions": SimpleNamespace(AirflowException=Later, AirflowFailException=Never),
        "airflow.providers.standard.operators.python": SimpleNamespace(
            PythonOperator=Operator, ShortCircuitOperator=Operator
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return runpy.run_path(str(JOBS / "airflow" / "flink_triage_dag.py"))


def test_the_commands_of_the_dag_are_ours(dag: dict[str, Any]) -> None:
    names = ["ingest", "report", "maintain"]
    parsed = [build_parser().parse_args(dag[name].given["op_args"]) for name in names]
    assert [arguments.command for arguments in parsed] == ["run", "report", "maintain"]
    assert len({arguments.warehouse for arguments in parsed}) == 1
    assert {dag[name].given["python_callable"] for name in names} == {dag["call"]}


def test_the_dag_maintains_after_the_first_run_of_a_day(dag: dict[str, Any]) -> None:
    order = {name: dag[name].before for name in ("report", "is_due", "maintain")}
    assert order == {"report": "ingest", "is_due": "report", "maintain": "is_due"}
    is_due = dag["is_due"].given["python_callable"]
    for hour in (0, 1, 23):
        started = datetime(2026, 11, 21, hour, 7, tzinfo=UTC)
        assert is_due(dag_run=SimpleNamespace(start_date=started)) == (hour == 0)


@pytest.mark.parametrize(
    ("code", "raised"),
    [(1, Never), (2, Never), (3, Never), (4, Later), (5, Later), (70, Never), (143, Later)],
)
def test_dag_retries_only_transient_errors(
    dag: dict[str, Any], stand_ins: Path, code: int, raised: type[Exception]
) -> None:
    stand_in(stand_ins, "flink-triage", "exit 0")
    dag["call"]("run")
    stand_in(stand_ins, "flink-triage", f"exit {code}")
    with pytest.raises(Later, match=f"flink-triage run ended with exit code {code}") as failed:
        dag["call"]("run")
    assert failed.type is raised


@pytest.mark.parametrize("name", ["fluent-bit.yaml", "vector.yaml"])
def test_the_collectors_write_where_the_jobs_read(name: str) -> None:
    text = (JOBS / "collectors" / name).read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    assert "bucket: flink-logs" in text
    assert "kubernetes/" in text
