"""The documentation matches the program: commands, tables, messages, and links.

``python tests/e2e/test_docs.py`` regenerates the generated part of ``docs/tables.md``.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import flink_triage as ft
from flink_triage import exit_codes, model
from flink_triage.cli.examples import EXAMPLES
from flink_triage.cli.main import build_parser, main
from flink_triage.report import FORMATS
from flink_triage.signatures import builtin_pack_directory, load_pack
from flink_triage.signatures.catalogue import render_catalogue
from flink_triage.spark.tables.arrow_types import spark_type
from flink_triage.spark.tables.schemas import TABLES
from flink_triage.spark.tables.table_spec import Table

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PACKAGE = PROJECT / "pipeline" / "flink_triage"
PAGES = sorted([*PROJECT.glob("*.md"), *DOCS.rglob("*.md"), *(PROJECT / "tests").rglob("*.md")])
COMMAND_PAGES = ("README.md", "CONTRIBUTING.md", "docs/tour.md", "docs/reading-a-report.md",
                 "docs/troubleshooting.md", "docs/tables.md", "tests/logs/README.md")  # fmt: skip
GENERATED = "<!-- Generated from spark/tables/schemas.py: python tests/e2e/test_docs.py -->\n"
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_EXIT_CODE = re.compile(r"^exit code (?P<code>\d+)\n", re.MULTILINE)


# --- commands ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A command on a page, with its documented output and exit code."""

    page: str
    command: str
    output: str
    exit_code: int

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)[1:]

    @property
    def needs_java(self) -> bool:
        first, *rest = self.words
        is_local_demo = first == "demo" and "local" in rest
        needing = ("run", "report", "doctor", "demo", "compare", "history", "maintain")
        return first in needing and not is_local_demo


def text_of(page: str) -> str:
    return (PROJECT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return [block["text"] for block in _BLOCK.finditer(text_of(page)) if block["kind"] == kind]


def shown_commands(page: str) -> Iterator[Shown]:
    """Yields the ``console`` blocks of a page. Each block contains one command and its output."""
    for block in blocks(page, "console"):
        command, _, output = block.removeprefix("$ ").partition("\n")
        code = _EXIT_CODE.search(output)
        yield Shown(page, command, _EXIT_CODE.sub("", output), int(code["code"]) if code else 0)


def is_shown_in(shown: str, printed: str) -> bool:
    """Whether ``printed`` contains the pieces of ``shown`` between ``...``, in the same order."""
    position = 0
    for piece in shown.split("..."):
        wanted = piece.strip()
        found = printed.find(wanted, position)
        if found < 0:
            return False
        position = found + len(wanted)
    return True


def link_inputs(folder: Path) -> None:
    """Links the inputs that the pages name into ``folder``, where outputs can be written."""
    (folder / "tests").symlink_to(PROJECT / "tests")


ALL_SHOWN = [shown for page in COMMAND_PAGES for shown in shown_commands(page)]


@pytest.mark.parametrize(
    "shown", [s for s in ALL_SHOWN if not s.needs_java], ids=lambda s: f"{s.page}: {s.command}"
)
def test_a_command_of_a_page_does_what_the_page_shows(
    shown: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    link_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    code = main(shown.words)
    printed = capsys.readouterr().out
    assert is_shown_in(shown.output, printed), printed
    assert code == shown.exit_code


def plain_commands() -> Iterator[tuple[str, str]]:
    for page in COMMAND_PAGES:
        for kind in ("", "sh", "bash"):
            for block in blocks(page, kind):
                for line in block.split("\n"):
                    if line.startswith("flink-triage "):
                        yield page, line


@pytest.mark.parametrize(
    ("page", "line"),
    [*plain_commands(), *((shown.page, shown.command) for shown in ALL_SHOWN)],
)
def test_a_command_of_a_page_exists_with_its_flags(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    if ">" in words:
        words = words[: words.index(">")]
    if words[0] in commands():
        build_parser().parse_args(words)
    elif words[0].startswith("-"):
        assert words[0] in build_parser()._option_string_actions, f"{page}: no such flag"
    else:
        assert (PROJECT / words[0]).exists(), f"{page}: neither a command nor a path"


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def commands() -> dict[str, argparse.ArgumentParser]:
    return subparsers(build_parser())


def every_command() -> list[tuple[str, ...]]:
    return [
        names
        for name, parser in commands().items()
        for names in [(name,), *((name, action) for action in subparsers(parser))]
    ]


def api_code() -> tuple[str, str]:
    """Returns the Python code of the API page: the part without Spark and the part with Spark."""
    found = blocks("docs/api.md", "python")
    first = next(n for n, block in enumerate(found) if "get_session" in block)
    return "\n".join(found[:first]), "\n".join(found[first:])


def test_the_python_of_the_interface_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(api_code()[0], "docs/api.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "Disk, volume or quota is full (No space left on device) 0.9" in printed
    assert "java.io.IOException: No space left on device" in printed
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_interface_page_names_all_of_the_interface() -> None:
    page = text_of("docs/api.md")
    assert [n for n in ft.__all__ if n != "__version__" and f"ft.{n}" not in page] == []


@pytest.mark.parametrize("names", every_command(), ids=" ".join)
def test_every_command_has_help(names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*names, "--help"])
    assert stopped.value.code == 0
    assert f"usage: flink-triage {' '.join(names)}" in capsys.readouterr().out


@pytest.mark.parametrize("name", commands())
def test_the_help_of_every_command_has_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = capsys.readouterr().out
    lines = [line for line, _ in EXAMPLES[name]]
    assert lines
    for line in [*lines, *(line for line, _ in EXAMPLES[""])]:
        build_parser().parse_args(shlex.split(line)[1:])
    assert all(line in shown for line in lines)


@pytest.mark.parametrize("name", commands())
def test_every_command_is_on_the_tour(name: str) -> None:
    assert any(shown.words[0] == name for shown in shown_commands("docs/tour.md"))


def test_the_tour_names_every_format_and_the_readme_every_exit_code() -> None:
    assert all(f"`{name}`" in text_of("docs/tour.md") for name in FORMATS)
    documented = re.findall(r"^\| (\d+) \|", text_of("README.md"), re.MULTILINE)
    codes = {code for code in vars(exit_codes).values() if isinstance(code, int)}
    assert documented == [str(code) for code in sorted({0, *codes})]


# --- tables ------------------------------------------------------------------------------------


def tables_body() -> str:
    """Returns the columns of every table as Markdown."""
    return "\n".join(_section(table) for table in TABLES.values())


def _section(table: Table) -> str:
    rows = [
        f"| `{column.name}` | `{_type_name(spark_type(column.type))}` | {column.comment} |"
        for column in table.columns
    ]
    head = [f"### `{table.name}`", "", f"{table.comment}.", "", "| column | type | holds |"]
    return "\n".join([*head, "|---|---|---|", *rows, ""])


def _type_name(ddl: str) -> str:
    return ddl.replace("`", "").replace(": ", ":").replace("|", "\\|")


def test_the_page_of_tables_is_that_of_the_schemas() -> None:
    _, marker, body = text_of("docs/tables.md").partition(GENERATED)
    assert marker, "docs/tables.md has lost the line that says where its columns come from"
    assert body == f"\n{tables_body()}"


# --- signatures, words, messages, links --------------------------------------------------------


def test_the_catalogue_of_signatures_is_that_of_the_pack() -> None:
    page = (DOCS / "signatures.md").read_text(encoding="utf-8")
    assert page == render_catalogue(load_pack([builtin_pack_directory()])), "make catalogue"


@pytest.mark.parametrize("values", ["Severity", "Role", "Process", "Origin", "Verdict"])
def test_glossary_explains_every_value_of_a_result(values: str) -> None:
    glossary = text_of("docs/glossary.md")
    missing = [word for word in get_args(getattr(model, values)) if f"`{word}`" not in glossary]
    assert missing == []


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_pages_use_the_terms_of_the_glossary(page: str) -> None:
    """The pages do not use synonyms that the glossary replaces."""
    text = re.sub(r"```.*?```|`[^`]*`", "", text_of(page), flags=re.DOTALL)
    found = re.findall(r"(?<![.\w])(?:log entr(?:y|ies)|log records?|stacktraces?)\b", text)
    assert found == []


ERRORS = frozenset({"CorruptStateError", "EnvironmentProblem", "OutputHeldError", "UsageError"})
# Modules with messages for developers, about an invalid argument or a build step.
FOR_DEVELOPERS = frozenset(
    {"remediation/build_options.py", "remediation/patch.py", "report/__init__.py"}
)


def messages() -> Iterator[tuple[str, str]]:
    """Yields (module, longest constant text) for each error in `ERRORS` that users can see."""
    for module in sorted(PACKAGE.rglob("*.py")):
        name = str(module.relative_to(PACKAGE))
        if name in FOR_DEVELOPERS:
            continue
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            words = _message_of(node)
            if words:
                yield name, words


def _message_of(node: ast.AST) -> str | None:
    if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
        return None
    raised = node.exc
    if not (isinstance(raised.func, ast.Name) and raised.func.id in ERRORS):
        return None
    constants = (n.value for n in ast.walk(raised.args[0]) if isinstance(n, ast.Constant))
    words = [c.strip(" :;,(\"'") for c in constants if isinstance(c, str)]
    return max(words, key=len, default="") or None


@pytest.mark.parametrize(("module", "words"), sorted(set(messages())))
def test_every_error_message_has_its_place_in_troubleshooting(module: str, words: str) -> None:
    page = re.sub(r"\s+", " ", text_of("docs/troubleshooting.md"))
    assert words in page, f"{module} says it"


_LINK = re.compile(r"\]\((?P<target>[^)\s#]*)(?:#(?P<anchor>[^)\s]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    wrong = [
        link[0]
        for link in _LINK.finditer(text)
        if not link["target"].startswith(("https://", "mailto:"))
        and not _leads_somewhere(page, link["target"], link["anchor"])
    ]
    assert wrong == []


def _leads_somewhere(page: Path, target: str, anchor: str | None) -> bool:
    path = (page.parent / target) if target else page
    if not path.exists() or not anchor:
        return path.exists()
    return anchor in _anchors_of(path)


@cache
def _anchors_of(page: Path) -> frozenset[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings)


def test_pieces_between_dots_must_be_in_order() -> None:
    assert is_shown_in("a\n...\nc", "a\nb\nc\n")
    assert not is_shown_in("c ... a", "a b c")
    assert not is_shown_in("a\nc", "a\nb\nc")


def write_tables_page() -> None:
    page = DOCS / "tables.md"
    head, marker, _ = page.read_text(encoding="utf-8").partition(GENERATED)
    page.write_text(f"{head}{marker}\n{tables_body()}", encoding="utf-8")


if __name__ == "__main__":
    write_tables_page()
