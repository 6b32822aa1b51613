"""Renders a result as one self-contained HTML page, without network access, with a strict CSP.

The page is complete without JavaScript, which only adds copying, filtering and unfolding. Jinja2
escapes all log text, which appears only in text and in quoted attributes. The policy allows only
the style sheet and the script of this package, which it identifies by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup

from flink_triage.model import Result
from flink_triage.remediation import render_patch
from flink_triage.report.drawings import incident_timeline as timeline
from flink_triage.report.facts import changed, impact, wording
from flink_triage.report.facts import closest_failures as resemblance
from flink_triage.report.facts.patches import PatchRenderer, already, now
from flink_triage.report.facts.sanitize import clean_values, one_line
from flink_triage.report.formats.html_page import Limits, link_of, page_of

# A larger page opens slowly, and mail servers may reject it. It is rendered with less content.
MAX_BYTES = 4_000_000


def render_html(
    result: Result,
    *,
    patch: PatchRenderer | None = None,
    limits: Limits | None = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """The page, with less content if it exceeds ``max_bytes``; omitted items are counted.

    A page may remain larger if its content cannot be reduced further.
    """
    cleaned, renderer = clean_values(result), patch or render_patch
    limits = limits or Limits()
    template = _environment().get_template("report.html.j2")
    while True:
        page = template.render(page=page_of(cleaned, limits, renderer), **_assets())
        size = len(page.encode("utf-8", "replace"))
        smaller = limits.smaller(max_bytes / size)
        if size <= max_bytes or smaller == limits:
            return page
        limits = smaller


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flink_triage.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        wording=wording,
        changed=changed,
        impact=impact,
        resemblance=resemblance,
        timeline=timeline,
        link_of=link_of,
        now=now,
        already=already,
    )
    environment.globals["get_all"] = "see the JSON output (--format json)"
    environment.filters.update(line=one_line)
    return environment


@cache
def _assets() -> dict[str, Markup]:
    folder = files("flink_triage.report") / "templates"
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = (folder / "report.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
