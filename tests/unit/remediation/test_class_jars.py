"""A missing class names the JAR that contains it."""

from __future__ import annotations

import re

import pytest

from flink_triage.package_data import builtin_pack_directory
from flink_triage.remediation import resolve
from flink_triage.remediation.class_jars import jar_step
from flink_triage.signatures import RemediationSpec

LINES = (builtin_pack_directory() / "class-jars" / "jars.tsv").read_text("utf-8").splitlines()
SPEC = RemediationSpec("Add the jar.", ("Find the class.",), missing_class="class")


def _steps(spec: RemediationSpec, captures: dict[str, str]) -> tuple[str, ...]:
    return resolve(spec, flink_version="1.20.0", effective={}, captures=captures).steps


def test_the_first_step_names_the_jar() -> None:
    first, second = _steps(SPEC, {"class": "org.postgresql.Driver"})
    assert first.startswith("org.postgresql.Driver is in ")
    assert second == "Find the class."


@pytest.mark.parametrize("name", ["com.acme.Prices", "org", "", "postgresql", "../x", "a\tb"])
def test_an_unknown_class_adds_no_step(name: str) -> None:
    assert _steps(SPEC, {"class": name}) == ("Find the class.",)


def test_without_a_capture_no_step_is_added() -> None:
    assert _steps(SPEC, {}) == ("Find the class.",)
    spec = RemediationSpec("Add the jar.", ("Find the class.",))
    assert _steps(spec, {"class": "org.postgresql.Driver"}) == ("Find the class.",)


def test_names_with_slashes_are_the_same_classes() -> None:
    assert jar_step("org/postgresql/Driver") == jar_step("org.postgresql.Driver") is not None


def test_a_nested_class_is_in_the_jar_of_its_class() -> None:
    name = "org.apache.flink.streaming.api.functions.source.SourceFunction"
    step, nested = jar_step(name), jar_step(f"{name}$SourceContext")
    assert step is not None
    assert nested == step.replace(name, f"{name}$SourceContext")


def test_a_long_name_is_cut() -> None:
    step = jar_step("org.postgresql." + "x" * 400)
    assert step is not None
    assert "x..." in step
    assert len(step) < 600


def test_a_prefix_ends_at_a_whole_name() -> None:
    assert jar_step("org.postgresqlx.Driver") is None


def test_the_longest_prefix_applies() -> None:
    general = jar_step("org.apache.kafka.common.serialization.StringDeserializer")
    assert general is not None
    assert "kafka-clients" in general
    special = jar_step("org.apache.kafka.connect.data.Schema")
    assert special is not None
    assert "connect-api" in special


def test_each_row_has_a_prefix_a_jar_advice_and_a_source() -> None:
    assert LINES[0].split("\t") == ["prefix", "jar", "advice", "source"]
    rows = [line.split("\t") for line in LINES[1:]]
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    for row in rows:
        prefix, jar, advice, source = row
        assert re.fullmatch(r"[\w$]+(\.[\w$]+)*", prefix), row
        assert jar, row
        assert not jar.endswith("."), row
        assert advice.endswith("."), row
        assert len(advice) <= 250, row
        assert source, row
