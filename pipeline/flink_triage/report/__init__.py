"""One `Result` in; text, JSON, JSON lines, Markdown, HTML, SARIF or GitHub annotations out.

Every format renders the same object and nothing else, so that they cannot disagree.
"""

from __future__ import annotations

from typing import Literal, get_args

from flink_triage.errors import UsageError
from flink_triage.model import Result
from flink_triage.report.github import render_github
from flink_triage.report.html import render_html
from flink_triage.report.markdown import render_markdown
from flink_triage.report.patches import PatchRenderer
from flink_triage.report.result_json import dump_json, encode, from_json, schema_text, to_json
from flink_triage.report.sarif import sarif_of
from flink_triage.report.text import render_text, wants_color

Format = Literal["text", "json", "jsonl", "markdown", "html", "sarif", "github"]
FORMATS: tuple[Format, ...] = get_args(Format)

__all__ = [
    "FORMATS",
    "Format",
    "PatchRenderer",
    "from_json",
    "render",
    "render_github",
    "render_html",
    "render_json",
    "render_jsonl",
    "render_markdown",
    "render_text",
    "sarif_of",
    "schema_text",
    "to_json",
    "wants_color",
]


def render(
    result: Result,
    format: Format,
    *,
    verbose: bool = False,
    color: bool = False,
    width: int = 80,
    patch: PatchRenderer | None = None,
) -> str:
    """The result in one format, ending in a newline.

    ``verbose``, ``color`` and ``width`` concern text only; ``patch`` writes the configuration to
    paste (default: the remediation stage's).  Raises `UsageError` for a format not in `FORMATS`.
    """
    if format == "text":
        return render_text(result, verbose=verbose, color=color, width=width, patch=patch)
    if format == "json":
        return render_json(result)
    if format == "jsonl":
        return render_jsonl(result)
    if format == "markdown":
        return render_markdown(result, patch=patch)
    if format == "html":
        return render_html(result, patch=patch)
    if format == "sarif":
        return dump_json(sarif_of(result), indent=2) + "\n"
    if format == "github":
        return render_github(result)
    raise UsageError(f"format: got {format!r}, allowed: {', '.join(FORMATS)}")


def render_json(result: Result) -> str:
    return dump_json(to_json(result), indent=2) + "\n"


def render_jsonl(result: Result) -> str:
    """One incident a line, each with the ``schema_version`` and ``run_id`` it belongs to."""
    head = {"schema_version": result.schema_version, "run_id": result.run.run_id}
    lines = [dump_json({**head, **encode(incident)}) for incident in result.incidents]
    return "".join(line + "\n" for line in lines)
