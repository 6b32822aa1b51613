"""Requirements that all built-in signatures must meet."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from flink_triage.diagnosis.context.unmet_slot_requests import REQUESTED
from flink_triage.logs.layouts import parse_header
from flink_triage.logs.lifecycle import parse_lifecycle
from flink_triage.model import Match
from flink_triage.remediation import check_pack
from flink_triage.signatures import (
    Matcher,
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    read_pack,
)
from flink_triage.signatures.catalogue import render_catalogue
from flink_triage.signatures.export import label_mapper
from flink_triage.signatures.lint import lint_signature
from flink_triage.signatures.samples import Overlap, check_examples, match_text, overlap_matrix
from flink_triage.signatures.signature import Meaning
from flink_triage.yaml_documents import MappingNode, Node, Scalar, read_document

REPOSITORY = Path(__file__).parents[2]
PACK, PROBLEMS = read_pack([builtin_pack_directory()])
SIGNATURES = list(PACK.signatures.values())

# Accepted overlaps: (owner of the example, signature that ranks above it), with the reason.
KNOWN_OVERLAPS: dict[tuple[str, str], str] = {}


def test_the_pack_loads_without_a_problem() -> None:
    assert [str(problem) for problem in PROBLEMS] == []


def test_the_pack_is_not_empty() -> None:
    assert len(SIGNATURES) > 50


@pytest.mark.parametrize("meaning", get_args(Meaning))
def test_each_meaning_has_one_signature(meaning: Meaning) -> None:
    assert len(PACK.with_meaning(meaning)) == 1


def test_the_code_names_no_signature() -> None:
    """The code refers to fields of signatures only, so that users can replace a signature."""
    named = {
        f"{path.relative_to(REPOSITORY)}: {node.value}"
        for path in (REPOSITORY / "pipeline").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in PACK.signatures
    }
    assert named == set()


def test_examples_match_and_near_misses_do_not() -> None:
    # Alone: in the whole pack, another signature may explain the example of a fallback.
    problems = [str(p) for one in SIGNATURES for p in check_examples(build_pack([one]))]
    assert problems == []


def test_linter_reports_no_problems() -> None:
    """For example, no regex is slow on a hostile text."""
    assert [str(problem) for one in SIGNATURES for problem in lint_signature(one)] == []


def test_every_option_exists_and_takes_its_value_in_each_flink_line() -> None:
    assert check_pack(PACK) == ()


def test_editors_and_the_loader_agree_on_the_schema() -> None:
    schema = builtin_pack_directory() / "signature.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    nodes = {one.id: read_document(Path(one.path), one.id)[0] for one in SIGNATURES}
    errors = [
        f"{name}: {error.json_path}: {error.message}"
        for name, node in nodes.items()
        for error in validator.iter_errors(_plain(node) if node is not None else None)
    ]
    assert errors == []


def _plain(node: Node, key: str = "") -> object:
    """Converts ``count`` and ``factor`` to numbers; all other scalars are strings."""
    if isinstance(node, MappingNode):
        return {entry.key: _plain(entry.value, entry.key) for entry in node.entries}
    if isinstance(node, Scalar):
        numbers = {"count": int, "factor": float}
        return numbers[key](node.text) if key in numbers else node.text
    return [_plain(item) for item in node.items]


@cache
def _overlaps() -> tuple[Overlap, ...]:
    return overlap_matrix(PACK)


def test_owner_of_a_sample_ranks_first_on_it() -> None:
    surprises = [
        f"{overlap.owner} examples.match[{overlap.sample}]: {other} stands before it"
        for overlap in _overlaps()
        for other in overlap.beaten_by
        if (overlap.owner, other) not in KNOWN_OVERLAPS
    ]
    assert surprises == []


def test_a_minor_trigger_is_an_orderly_stop() -> None:
    """The diagnosis treats a minor trigger as an orderly shutdown, so only one may exist."""
    assert [one.id for one in PACK.signatures.values() if one.is_order] == [
        "taskmanager/shutdown-requested"
    ]


def test_every_accepted_overlap_still_occurs() -> None:
    occurring = {(o.owner, other) for o in _overlaps() for other in o.beaten_by}
    assert set(KNOWN_OVERLAPS) - occurring == set()


def test_no_sample_takes_long_against_the_whole_pack() -> None:
    matcher = Matcher(PACK)
    for signature in SIGNATURES:
        for text in (*signature.examples.match, *signature.examples.no_match):
            match_text(matcher, text)
    assert matcher.skipped == ()


@cache
def _healthy_files() -> tuple[Path, ...]:
    return tuple(sorted((REPOSITORY / "tests" / "logs" / "healthy").glob("*/logs/*.log")))


def test_no_harmful_signature_matches_healthy_logs() -> None:
    assert _healthy_files()
    matcher = Matcher(PACK)
    harmful = [
        f"{path.parent.name}/{path.name}: {match.signature}: {match.excerpt}"
        for path in _healthy_files()
        for text in _events(path)
        for match in match_text(matcher, text)
        if _matters(PACK, match)
        and not _is_request(text)
        and (path.parents[1].name, match.signature) not in BY_THE_WAY
    ]
    assert harmful == []


def _is_request(text: str) -> bool:
    """Whether the text requests a TaskManager, which is a fault only if a job lacked it."""
    lifecycle = parse_lifecycle(text)
    return lifecycle is not None and lifecycle.kind == REQUESTED


OWN_CODE = "operator/user-code-exception"
# Exceptions in healthy logs that user code handled, or after which the job continued.
BY_THE_WAY = {
    ("caught-1.20.2", OWN_CODE),
    ("caught-1.20.2", "network/read-timed-out"),
    ("caught-1.20.2", "metrics/reporter-missing"),
    ("quoted-1.14.6", OWN_CODE),
    ("quoted-1.14.6", "network/connection-reset"),
    ("quoted-1.14.6", "network/read-timed-out"),
    ("quoted-1.14.6", "memory/oom-java-heap"),
}


def _matters(pack: SignaturePack, match: Match) -> bool:
    signature = pack.signatures[match.signature]
    return not (signature.is_episodic or signature.severity == "info" or signature.role == "benign")


def _events(path: Path) -> Iterator[str]:
    pending: list[str] = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if pending and parse_header(line) is not None:
            yield "\n".join(pending)
            pending = []
        pending.append(line)
    yield "\n".join(pending)


def test_the_catalogue_page_is_fresh() -> None:
    page = REPOSITORY / "docs" / "signatures.md"
    command = "python -m flink_triage.signatures.catalogue > docs/signatures.md"
    assert page.is_file(), f"missing; run: {command}"
    assert page.read_text(encoding="utf-8") == render_catalogue(PACK), f"stale; run: {command}"


def test_labels_for_the_kubernetes_operator_name_most_of_the_pack() -> None:
    mapper = label_mapper(PACK)
    assert set(mapper.labels.values()) | set(mapper.left_out) == set(PACK.signatures)
    assert len(mapper.left_out) < len(SIGNATURES) / 3
