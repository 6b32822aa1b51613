"""The generated benchmark inputs are valid logs, and a case measures whole processes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.bench import Case, Work, cases_of, compare
from benchmarks.corpus import Recipe, write_recipe, write_signatures
from benchmarks.floods import FLOODS, write_flood
from flink_triage.local import Options, run_local
from flink_triage.signatures import builtin_pack_directory, load_pack


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpora")


def content(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            sizes.append(len(gzip.decompress(data) if path.suffix == ".gz" else data))
    return sum(sizes)


@pytest.mark.parametrize("form", ["gzip", "one", "tiny"])
def test_each_form_holds_the_same_bytes(corpora: Path, form: str) -> None:
    plain = write_recipe(Recipe("folders", 1, 0.3), corpora)
    assert content(write_recipe(Recipe(form, 1, 0.3), corpora)) == content(plain) > 1 << 20


def test_unknown_form_is_refused(corpora: Path) -> None:
    with pytest.raises(ValueError, match="'flat', allowed: folders, gzip, one, tiny, disc"):
        write_recipe(Recipe("flat", 1, 0.3), corpora)


@pytest.mark.parametrize("form", FLOODS)
def test_a_flood_is_read_as_logs_with_faults(corpora: Path, form: str) -> None:
    folder = write_recipe(Recipe(form, 1, 0), corpora)
    assert 1 << 20 <= content(folder) < (1 << 20) + 20_000
    result = run_local([str(folder)], Options())
    assert result.coverage.events > 500
    assert not result.coverage.quarantined
    (incident,) = result.incidents[:1]
    assert incident.verdict == ("undetermined" if form == "errors" else "diagnosed")


def test_floods_are_the_same_each_time(tmp_path: Path) -> None:
    first, again = (tmp_path / name for name in ("first", "again"))
    for folder in (first, again):
        write_flood("session", folder, 1 << 18)
    assert [p.read_bytes() for p in first.iterdir()] == [p.read_bytes() for p in again.iterdir()]


def test_made_signatures_are_sound(tmp_path: Path) -> None:
    pack = load_pack((builtin_pack_directory(), write_signatures(7, tmp_path)))
    alone = load_pack((builtin_pack_directory(),))
    assert len(pack.signatures) == len(alone.signatures) + 7


def test_a_case_compares_whole_processes(corpora: Path) -> None:
    pytest.importorskip("pyspark", reason="the processes of both sides import it")
    work = Work("diagnose", Recipe("folders", 1, 0.3))
    outcome = compare(Case("itself", work, work, 1.0), 1, 1, corpora)
    assert outcome.ratios[0] > 0
    assert outcome.python_mb > 10
    assert outcome.jvm_mb == 0


def test_all_cases_are_over_the_size_that_is_asked_for() -> None:
    assert {case.ours.recipe.megabytes for case in cases_of(640).values()} >= {640, 5, 160, 16}


def test_runs_are_compared_with_the_runs_at_the_same_distance_from_maintain() -> None:
    pytest.importorskip("pyspark", reason="the module imports it")
    from benchmarks.incremental import compared_runs

    assert compared_runs(300, 168) == [
        (range(169, 179), range(2, 12)),
        (range(291, 301), range(123, 133)),
    ]
    assert compared_runs(30, 0) == [(range(25, 31), range(1, 7))]
    assert compared_runs(30, 168) == compared_runs(30, 0)
