"""Displays a result, an incident, or a diagnosis in a notebook.

Front ends call ``_repr_html_`` or, for a result, ``_repr_markdown_``. The model does not depend on
the report, so `show_richly` adds these methods to the model classes. The HTML is a fragment without
scripts or style sheets, because a notebook has its own styles and executes every script.
"""

from __future__ import annotations

from typing import Any

import jinja2

from flink_triage.model import Diagnosis, Incident, Result
from flink_triage.remediation import render_patch
from flink_triage.report.facts import changed, wording
from flink_triage.report.facts import closest_failures as resemblance
from flink_triage.report.facts.patches import patches_of
from flink_triage.report.facts.sanitize import clean_values, one_line
from flink_triage.report.formats.markdown import render_markdown

_MAX_ROWS = 50
_FRAGMENT = """\
{% macro cause(diagnosis, version) %}
<p><b>{{ diagnosis.title | line }}</b> ({{ diagnosis.role }}, {{ diagnosis.severity }},
{{ wording.percent(diagnosis.confidence) }} sure, {{ wording.count(diagnosis.occurrences, "event") }})
<code>{{ diagnosis.signature | line }}</code></p>
{% if diagnosis.evidence %}
<p><code>{{ wording.location(diagnosis.evidence[0]) }}</code><br>
<code>{{ wording.key_line(diagnosis.evidence[0].excerpt) }}</code></p>
{% endif %}
<p>{{ diagnosis.remediation.summary | line }}</p>
{% for patch in patches(diagnosis, version) %}
<p>{{ patch.place }}</p><pre>{{ patch.text }}</pre>
{% endfor %}
<details><summary>Reasons for the ranking</summary>
<ul>{% for reason in diagnosis.reasons %}<li>{{ reason | line }}</li>{% endfor %}</ul></details>
{% endmacro %}
{% macro one(incident) %}
<p><b>{{ incident.deployment | line }}</b>{% if incident.job_name %} job {{ incident.job_name | line }}{% endif %}:
{{ wording.state(incident) }}{% if wording.ending(incident) %}; {{ wording.ending(incident) }}{% endif %}</p>
{% if incident.verdict == "diagnosed" %}{{ cause(incident.diagnoses[0], incident.flink_version) }}
{% else %}<p>{{ incident.summary | line }}</p>{% endif %}
{% for heading, changes in changed.shown(incident)[0] %}
<p>{{ heading }}:</p>
<ul>{% for change in changes %}<li><code>{{ change }}</code></li>{% endfor %}</ul>
{% endfor %}
{% if incident.similar %}
<p>{{ resemblance.HEADING }}:</p>
<ul>{% for one in incident.similar %}<li>{{ one.title | line }} <code>{{ one.signature | line }}</code>
{% for label, text in resemblance.details_of(one) %}<br>{{ label }}: {{ text }}{% endfor %}</li>{% endfor %}</ul>
{% endif %}
{% if incident.diagnoses | length > 1 %}
<details><summary>{{ wording.count(incident.diagnoses | length - 1, "other diagnosis", "other diagnoses") }}</summary>
<ol start="2">{% for other in incident.diagnoses[1:] %}<li>{{ other.title | line }} ({{ other.role }},
{{ wording.percent(other.confidence) }})</li>{% endfor %}</ol></details>
{% endif %}
{% endmacro %}
{% macro all(result) %}
<p><b>{{ wording.overview(result) }}</b><br>{{ wording.coverage_line(result.coverage) }}</p>
<table><thead><tr><th>deployment</th><th>state</th><th>root cause</th><th>confidence</th></tr></thead>
<tbody>{% for incident in wording.by_urgency(result.incidents)[:limit] %}
<tr><td>{{ incident.deployment | line }}</td><td>{{ wording.state(incident) }}</td>
<td>{% if incident.verdict == "diagnosed" %}{{ incident.diagnoses[0].title | line }}{% else %}{{ incident.summary | line }}{% endif %}</td>
<td>{% if incident.verdict == "diagnosed" %}{{ wording.percent(incident.diagnoses[0].confidence) }}{% endif %}</td></tr>
{% endfor %}</tbody></table>
{% if result.incidents | length > limit %}<p>{{ result.incidents | length - limit }} more in <code>.incidents</code></p>{% endif %}
{% endmacro %}
"""  # noqa: E501


def html_of(value: Result | Incident | Diagnosis) -> str:
    """An HTML fragment; text from logs is escaped."""
    kind = {Result: "all", Incident: "one", Diagnosis: "cause"}[type(value)]
    macro = getattr(_template().module, kind)
    cleaned = clean_values(value)
    shown = macro(cleaned, None) if isinstance(cleaned, Diagnosis) else macro(cleaned)
    return f'<div class="flink-triage">{shown}</div>'


def markdown_of(value: Result) -> str:
    return render_markdown(value)


def show_richly() -> None:
    """Add the display methods to the model classes; repeated calls have no effect."""
    kinds: tuple[Any, ...] = (Result, Incident, Diagnosis)
    for kind in kinds:
        kind._repr_html_ = html_of
    result: Any = Result
    result._repr_markdown_ = markdown_of


def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(line=one_line)
    environment.globals.update(
        wording=wording, changed=changed, resemblance=resemblance, patches=_patches, limit=_MAX_ROWS
    )
    return environment.from_string(_FRAGMENT)


def _patches(diagnosis: Diagnosis, version: str | None) -> Any:
    return patches_of(diagnosis.remediation.config, version, render_patch)
