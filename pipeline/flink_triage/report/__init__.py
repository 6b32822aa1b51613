"""Renders a `Result` as text, JSON, JSON lines, Markdown, HTML, SARIF or GitHub annotations.

All formats render the same object, so they are consistent with each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, get_args

from flink_triage.errors import UsageError
from flink_triage.json_values import encode
from flink_triage.model import Result
from flink_triage.report.formats.result_json import (
    dump_json,
    from_json,
    json_pieces,
    schema_text,
    to_json,
)

if TYPE_CHECKING:
    from flink_triage.report.facts.patches import PatchRenderer

Format = Literal["text", "json", "jsonl", "markdown", "html", "sarif", "github"]
FORMATS: tuple[Format, ...] = get_args(Format)

__all__ = ["FORMATS", "Format", "from_json", "render", "render_pieces", "schema_text", "to_json"]


def render(
    result: Result,
    format: Format,
    *,
    verbose: bool = False,
    color: bool = False,
    width: int = 80,
    patch: PatchRenderer | None = None,
) -> str:
    """The result in one format, ending in a newline; JSON lines are empty without incidents.

    ``verbose``, ``color`` and ``width`` apply only to text. ``patch`` renders the configuration to
    paste in text, Markdown and HTML (default: `render_patch`). Raises `UsageError` for a format not
    in `FORMATS`.
    """
    pieces = render_pieces(result, format, verbose=verbose, color=color, width=width, patch=patch)
    return "".join(pieces)


def render_pieces(
    result: Result,
    format: Format,
    *,
    verbose: bool = False,
    color: bool = False,
    width: int = 80,
    patch: PatchRenderer | None = None,
) -> Iterable[str]:
    """Like `render`, but in pieces, because the JSON of thousands of incidents is large.

    The module of a format other than JSON is imported on first use. For example, only HTML requires
    a template engine.
    """
    if format == "text":
        from flink_triage.report.formats.text import render_text

        return [render_text(result, verbose=verbose, color=color, width=width, patch=patch)]
    if format == "json":
        return itertools.chain(json_pieces(result), "\n")
    if format == "jsonl":
        return _jsonl_lines(result)
    if format == "markdown":
        from flink_triage.report.formats.markdown import render_markdown

        return [render_markdown(result, patch=patch)]
    if format == "html":
        from flink_triage.report.formats.html import render_html

        return [render_html(result, patch=patch)]
    if format == "sarif":
        from flink_triage.report.formats.sarif import sarif_of

        return [dump_json(sarif_of(result), indent=2) + "\n"]
    if format == "github":
        from flink_triage.report.formats.github import render_github

        return [render_github(result)]
    raise UsageError(f"format: got {format!r}, allowed: {', '.join(FORMATS)}")


def _jsonl_lines(result: Result) -> Iterator[str]:
    """One incident per line, each with ``schema_version`` and ``run_id``."""
    head = {"schema_version": result.schema_version, "run_id": result.run.run_id}
    for incident in result.incidents:
        yield dump_json({**head, **encode(incident)}) + "\n"
