"""Manifests, the DAG and the collectors' configurations, as far as they can be checked here."""

from __future__ import annotations

import ast
import json
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from flink_triage import __version__
from flink_triage.cli.main import build_parser
from flink_triage.logs.files import InputFile, deployment_of

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"
CRONJOB = JOBS / "kubernetes" / "cronjob.yaml"
APPLICATION = JOBS / "kubernetes" / "scheduled-spark-application.yaml"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def container() -> Any:
    pod = load(CRONJOB)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod["containers"][0]


def words_of(path: Path) -> list[str]:
    words = container()["args"] if path == CRONJOB else load(path)["spec"]["template"]["arguments"]
    return [str(word) for word in words]


@pytest.mark.parametrize("version", ["1.28", "1.37"])
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


def test_images_are_of_this_release() -> None:
    images = {container()["image"], load(APPLICATION)["spec"]["template"]["image"]}
    assert {image.rpartition(":")[2] for image in images} == {__version__}


@pytest.mark.parametrize("manifest", [CRONJOB, APPLICATION], ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param("orders-5f7c9d6b8-x2x9z", "orders", id="a JobManager of a ReplicaSet"),
        pytest.param("orders-prod-taskmanager-1-12", "orders-prod", id="a native TaskManager"),
        pytest.param(
            "orders-5f7c9d6b8-x2x9z_flink_main-0123456789abcdef", "orders", id="Fluent Bit's tag"
        ),
        pytest.param("orders-prod", "orders-prod", id="a folder that is no pod"),
    ],
)
def test_pods_of_one_deployment_are_one(manifest: Path, folder: str, expected: str) -> None:
    group_by = build_parser().parse_args(words_of(manifest)).group_by
    root = "s3a://flink-logs/kubernetes"
    path = f"{root}/{folder}/20260101-000000-1.log.gz"
    file = InputFile(path, 1, datetime.now(timezone.utc), root)
    assert deployment_of(file, group_by) == expected


def test_the_dag_compiles_and_its_commands_are_ours() -> None:
    """Airflow itself is not installed here."""
    path = JOBS / "airflow" / "flink_triage_dag.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    compile(tree, str(path), "exec")
    tables = next(
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    )
    commands = [
        eval(compile(ast.Expression(word.value), str(path), "eval"), {"TABLES": tables})
        for word in ast.walk(tree)
        if isinstance(word, ast.keyword) and word.arg == "bash_command"
    ]
    parsed = [build_parser().parse_args(shlex.split(command)[1:]) for command in commands]
    assert [arguments.command for arguments in parsed] == ["run", "report"]


@pytest.mark.parametrize("name", ["fluent-bit.yaml", "vector.yaml"])
def test_the_collectors_write_where_the_jobs_read(name: str) -> None:
    text = (JOBS / "collectors" / name).read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    assert "bucket: flink-logs" in text
    assert "kubernetes/" in text
