"""Rules for the files of the project: sizes, names, excluded words, and consistent references."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import flink_triage
from flink_triage.cli.demo import DEMO_LOGS, demo_logs

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "pipeline" / "flink_triage"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 400
MAX_FUNCTION_LINES = 60

# Words that are specific to a machine or a network.
STAY_OUT = re.compile(
    r"""
    (?<![\w.~-])/(?:work|root)/                                            # somebody's folders
  | \b(?:py[p]i | pythonhoste[d] | registry\.npmj[s] | proxy\.golan[g])\.org     # registries
  | \b(?:repo1?\.mave[n]\.(?:org|apache\.org) | crate[s]\.io)
  | \b(?:10|127)\.0\.0\.1:\d+/(?:simple|maven|artifactory|repository)          # mirrors
  | \b(?:our|this|another|previous|next|other)\ coding\ session
    """,
    re.VERBOSE,
)
# Files that may contain such words.
EXEMPT: frozenset[str] = frozenset()


def project_files() -> list[Path]:
    """Returns all files of the repository or, without Git, of a source archive."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode("utf-8", "surrogateescape").split("\0")
        return [PROJECT / name for name in names if name and (PROJECT / name).is_file()]
    folders = ("pipeline", "patterns", "jobs", "notebooks", "tests", "benchmarks", "docs")
    found = [path for folder in folders for path in (PROJECT / folder).rglob("*")]
    return [path for path in (*PROJECT.glob("*.*"), *found) if path.is_file()]


def is_recorded_log(path: Path) -> bool:
    """Whether a file is a recorded log, whose text is kept as written."""
    return "tests/logs/" in path.as_posix() and path.name not in ("label.yaml", "README.md")


def test_no_file_mentions_the_development_environment() -> None:
    found = []
    for path in project_files():
        name = path.relative_to(PROJECT).as_posix()
        if name in EXEMPT or is_recorded_log(path):
            continue
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            word = STAY_OUT.search(line.decode("utf-8", "replace"))
            if word:
                found.append(f"{name}:{number}: {word[0]}")
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_kept_out"),
    [
        pytest.param(f"see /{'root'}/notes.md", True, id="a path in /root"),
        pytest.param("file:/var/lib/flink/645804/ck", False, id="a path from a log"),
        pytest.param("taken from a/work/item", False, id="part of a relative path"),
        pytest.param(f"https://{'pypi'}.org/project/x/", True, id="a package registry"),
        pytest.param("SparkSession.getActiveSession()", False, id="a Spark session"),
    ],
)
def test_excluded_words_are_recognized(line: str, is_kept_out: bool) -> None:
    assert bool(STAY_OUT.search(line)) is is_kept_out


@cache
def parsed_modules() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in MODULES
    }


def test_modules_and_functions_are_short() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    assert [path for path, text in texts.items() if text.count("\n") > MAX_LINES] == []
    functions = [
        (f"{name}: {node.name}", node.end_lineno - node.lineno + 1)
        for name, tree in parsed_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    ]
    assert [function for function in functions if function[1] > MAX_FUNCTION_LINES] == []


def test_every_module_has_a_docstring() -> None:
    trees = parsed_modules().items()
    assert [name for name, tree in trees if tree.body and not ast.get_docstring(tree)] == []


def test_text_of_a_log_is_split_at_newlines_only() -> None:
    """``str.splitlines`` also splits at U+2028, NEL, VT and FF, which can occur within a line."""
    calls = [
        f"{name}:{node.lineno}"
        for name, tree in parsed_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    ]
    assert calls == []


def test_no_module_has_a_meaningless_name() -> None:
    empty = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}
    assert [path.name for path in MODULES if path.stem in empty] == []


# --- the wheel, the demo, and the changelog -----------------------------------------------------


def test_files_included_in_the_wheel_exist() -> None:
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    taken = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert [source for source in taken if not (PROJECT / source).exists()] == []


def test_the_demo_finds_its_logs() -> None:
    assert [folder.parent.name for folder in demo_logs()] == [Path(name).name for name in DEMO_LOGS]


def test_the_changelog_has_the_version() -> None:
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *_ = re.findall(r"^## \[([^\]]+)\]", changes, re.MULTILINE)
    assert newest == flink_triage.__version__


def test_a_release_is_described_in_sixty_lines() -> None:
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *releases = re.split(r"^## ", changes, flags=re.MULTILINE)
    assert [release.splitlines()[0] for release in releases if release.count("\n") > 60] == []


# --- the Makefile ------------------------------------------------------------------------------


def makefile() -> str:
    return (PROJECT / "Makefile").read_text(encoding="utf-8")


def test_every_phony_target_has_a_rule() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", makefile(), re.MULTILINE)
    targets = set(re.findall(r"^([\w-]+):", makefile(), re.MULTILINE))
    assert {name for names in phony for name in names.split()} - targets == set()


def test_every_module_that_a_target_runs_exists() -> None:
    ours = re.findall(r"python -m ((?:flink_triage|benchmarks)[\w.]*)", makefile())
    assert ours
    for name in ours:
        path = PROJECT / ("pipeline" if name.startswith("flink_triage") else "")
        module = path.joinpath(*name.split("."))
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists(), name


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_a_page_names_only_targets_that_are_there(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE))
    targets = set(re.findall(r"^([\w-]+):", makefile(), re.MULTILINE))
    assert named - targets == set()
