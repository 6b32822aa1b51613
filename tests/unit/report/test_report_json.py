"""The JSON format: lossless, valid against the published schema. Invalid documents are rejected."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flink_triage import model
from flink_triage.errors import CorruptStateError
from flink_triage.report import from_json, render, render_pieces, schema_text, to_json
from tests.unit.report import examples, hostile

SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema.Draft202012Validator(
    SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


@pytest.mark.parametrize("name", examples.ALL)
def test_a_result_survives_the_way_through_json_text(name: str) -> None:
    result = examples.ALL[name]()
    assert from_json(json.loads(render(result, "json"))) == result


@pytest.mark.parametrize("name", examples.ALL)
def test_the_text_is_that_of_the_json_module_an_incident_at_a_time(name: str) -> None:
    result = examples.ALL[name]()
    pieces = list(render_pieces(result, "json"))
    assert "".join(pieces) == json.dumps(to_json(result), indent=2) + "\n"
    for incident in result.incidents:
        assert sum(f'"{incident.incident_id}"' in piece for piece in pieces) == 1
    assert len(pieces) > len(result.incidents)


@pytest.mark.parametrize("name", examples.ALL)
def test_the_schema_accepts_every_example(name: str) -> None:
    assert list(VALIDATOR.iter_errors(to_json(examples.ALL[name]()))) == []


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_survives_and_is_pure_ascii(text: str) -> None:
    result = hostile.filled(examples.diagnosed(), text)
    written = render(result, "json") + render(result, "jsonl")
    assert written.isascii()
    assert "\x1b" not in written
    assert "\x7f" not in written
    assert from_json(json.loads(render(result, "json"))) == result


@settings(max_examples=50, deadline=None)
@given(
    text=st.text(),
    number=st.integers(0, 2**63),
    share=st.floats(0, 1),
    moment=st.datetimes(datetime(1970, 1, 1), datetime(2262, 1, 1)),
)
def test_any_text_number_and_time_survives(
    text: str, number: int, share: float, moment: datetime
) -> None:
    at = moment.replace(tzinfo=UTC)
    incident = replace(
        examples.diagnosed_incident(),
        started_at=at,
        restarts=number,
        diagnoses=(replace(examples.disk_full(), confidence=share, captures={text: text}),),
    )
    result = replace(examples.diagnosed(), incidents=(incident,))
    written = render(result, "json")
    assert from_json(json.loads(written)) == result
    assert written == json.dumps(to_json(result), indent=2) + "\n"


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (examples.at("05:52:20"), "2026-11-21T05:52:20Z"),
        (examples.at("05:52:20.772"), "2026-11-21T05:52:20.772Z"),
        (examples.at("05:52:20.000001"), "2026-11-21T05:52:20.000001Z"),
        (
            datetime(2026, 11, 21, 6, 52, 20, tzinfo=timezone(timedelta(hours=1))),
            "2026-11-21T05:52:20Z",
        ),
    ],
)
def test_times_are_written_in_utc_with_a_z(at: datetime, written: str) -> None:
    result = examples.diagnosed()
    document = to_json(replace(result, run=replace(result.run, started_at=at)))
    assert document["run"]["started_at"] == written


def _dataclasses(kind: Any) -> set[type]:
    found = {kind}
    waiting = [kind]
    while waiting:
        for hint in get_type_hints(waiting.pop()).values():
            for part in _parts(hint):
                if is_dataclass(part) and part not in found:
                    found.add(part)
                    waiting.append(part)
    return found


def _parts(hint: Any) -> set[Any]:
    return {hint}.union(*(_parts(part) for part in get_args(hint) if not isinstance(part, str)))


def test_the_schema_has_the_fields_of_the_model_and_describes_each() -> None:
    shapes = {**SCHEMA["$defs"], "Result": SCHEMA}
    for kind in _dataclasses(model.Result):
        shape = shapes[kind.__name__]
        names = [field.name for field in fields(kind)]
        assert list(shape["properties"]) == names
        assert shape["required"] == names
        undescribed = [n for n, p in shape["properties"].items() if len(p["description"]) < 5]
        assert undescribed == []


@pytest.mark.parametrize(
    ("definition", "name", "allowed"),
    [
        ("Diagnosis", "severity", model.SEVERITIES),
        ("Diagnosis", "role", model.ROLES),
        ("Incident", "verdict", get_args(model.Verdict)),
        ("Incident", "outcome", get_args(model.Outcome)),
        ("ConfigChange", "action", get_args(model.Action)),
        ("ConfigChange", "scope", get_args(model.Scope)),
        ("ConfigChange", "current_source", ("log", "default", None)),
        ("Remediation", "risk", get_args(model.Risk)),
    ],
)
def test_schema_allows_the_values_of_the_model(
    definition: str, name: str, allowed: tuple[str, ...]
) -> None:
    assert SCHEMA["$defs"][definition]["properties"][name]["enum"] == list(allowed)


def _spoiled(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    document: Any = json.loads(render(examples.diagnosed(), "json"))
    *way, last = path
    inner = document
    for step in way:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema_version",), 3, "result.schema_version: got 3, allowed: 1, 2"),
        (("schema_version",), ..., "result.schema_version: got None, allowed: 1, 2"),
        (("run", "started_at"), "yesterday", "result.run.started_at: got 'yesterday'"),
        (("run", "started_at"), "2026-13-01T00:00:00Z", "result.run.started_at"),
        (("incidents", 0, "verdict"), "guilty", "result.incidents[0].verdict: got 'guilty'"),
        (("incidents", 0, "restarts"), True, "result.incidents[0].restarts: got True"),
        (("incidents", 0, "restarts"), 1.5, "result.incidents[0].restarts: got 1.5"),
        (("incidents", 0, "job_id"), ..., "result.incidents[0].job_id: missing"),
        (("incidents", 0, "diagnoses"), {}, "result.incidents[0].diagnoses: got {}"),
        (("tool", "name"), 1, "result.tool.name: got 1, allowed: a str"),
        (("coverage",), None, "result.coverage: got None, allowed: an object"),
    ],
)
def test_a_bad_document_is_refused_with_its_place(
    path: tuple[str | int, ...], value: Any, message: str
) -> None:
    document = _spoiled(path, value)
    with pytest.raises(CorruptStateError) as caught:
        from_json(document)
    assert str(caught.value).startswith(message)
    assert list(VALIDATOR.iter_errors(document)) != []


def test_json_other_than_an_object_is_refused() -> None:
    with pytest.raises(CorruptStateError, match="allowed: a JSON object"):
        from_json([])  # type: ignore[arg-type]


def test_fields_of_a_later_version_are_ignored_and_defaults_may_be_missing() -> None:
    document = _spoiled(("incidents", 0, "later"), 1)
    del document["incidents"][0]["missing_evidence"]
    assert from_json(document) == examples.diagnosed()


def test_json_lines_hold_one_incident_each_with_its_run_id() -> None:
    result = examples.fleet()
    lines = [json.loads(line) for line in render(result, "jsonl").split("\n")[:-1]]
    incidents = to_json(result)["incidents"]
    head = {"schema_version": 2, "run_id": result.run.run_id}
    assert lines == [{**head, **incident} for incident in incidents]
