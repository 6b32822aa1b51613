"""Renders a result as SARIF 2.1.0 for code scanning views, with one SARIF result per diagnosis.

Undetermined incidents and failures without a signature are also results, and each kind has its own
rule. A report without results means that no failure was found in the log lines that were read.
Messages are escaped, because viewers interpret ``[text](target)`` as links and ``{0}`` as
placeholders (SARIF 2.1.0, 3.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from flink_triage.json_values import encode
from flink_triage.model import Coverage, Diagnosis, Evidence, Incident, Result, Severity
from flink_triage.report.facts import wording
from flink_triage.report.facts.sanitize import clean_values, one_line

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
UNDETERMINED = "flink-triage/undetermined"
UNKNOWN = "flink-triage/unknown-failure"
# Ids and titles of the rules for results without a signature.
_OWN_RULES = {
    UNDETERMINED: "A failure whose cause is undetermined",
    UNKNOWN: "A failure without a signature",
}
_LEVELS: dict[Severity, str] = {
    "critical": "error",
    "major": "error",
    "minor": "warning",
    "info": "note",
}
_LINK = re.compile(r"[\\\[\]]")
_PLACEHOLDER = re.compile(r"\{(\d+)\}")

Json = dict[str, Any]


def sarif_of(result: Result) -> Json:
    """The SARIF log object, with one run."""
    cleaned = clean_values(result)
    found = [*_of_incidents(cleaned), *_of_unknown(cleaned)]
    rules = _rules(cleaned, {item["ruleId"] for item in found})
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": cleaned.tool.get("name", "flink-triage"),
                        "version": cleaned.tool.get("version", ""),
                        "rules": rules,
                    }
                },
                "automationDetails": {"id": f"flink-triage/{cleaned.run.run_id}"},
                "invocations": [_invocation(cleaned)],
                "columnKind": "unicodeCodePoints",
                "results": [{**item, "ruleIndex": index[item["ruleId"]]} for item in found],
            }
        ],
    }


def _of_incidents(result: Result) -> Iterator[Json]:
    for incident in wording.by_urgency(result.incidents):
        if incident.verdict == "undetermined":
            yield _undetermined(incident)
        for diagnosis in incident.diagnoses:
            yield _diagnosis(incident, diagnosis)


def _diagnosis(incident: Incident, diagnosis: Diagnosis) -> Json:
    is_root = diagnosis.rank == 1 and incident.verdict == "diagnosed"
    text = f"{incident.deployment}: {diagnosis.title}. {diagnosis.remediation.summary}"
    return {
        "ruleId": diagnosis.signature,
        # Only the first diagnosis of a diagnosed incident is more than a note.
        "level": _LEVELS[diagnosis.severity] if is_root else "note",
        "kind": "fail",
        "message": {"text": _message(text)},
        "locations": _locations(diagnosis.evidence[:1]),
        "relatedLocations": _locations(diagnosis.evidence[1:]),
        "partialFingerprints": {"incident/v1": f"{incident.incident_id}/{diagnosis.signature}"},
        "rank": round(100 * diagnosis.confidence, 1),
        "properties": {
            "deployment": incident.deployment,
            "incident": incident.incident_id,
            "rank": diagnosis.rank,
            "role": diagnosis.role,
            "severity": diagnosis.severity,
            "occurrences": diagnosis.occurrences,
            "since": encode(wording.since(incident)),
            **({"changes": encode(incident.changes)} if is_root else {}),
        },
    }


def _undetermined(incident: Incident) -> Json:
    fault = (incident.first_fault,) if incident.first_fault is not None else ()
    text = f"{incident.deployment}: {incident.summary or _OWN_RULES[UNDETERMINED]}"
    return {
        "ruleId": UNDETERMINED,
        # A failure without a signature may have stopped a job.
        "level": "error",
        "kind": "fail",
        "message": {"text": _message(text)},
        "locations": _locations(fault),
        "partialFingerprints": {"incident/v1": incident.incident_id},
        "properties": {
            "deployment": incident.deployment,
            "incident": incident.incident_id,
            "similar": encode(incident.similar),
            "changes": encode(incident.changes),
        },
    }


def _of_unknown(result: Result) -> Iterator[Json]:
    for failure in result.unknown:
        kind = failure.root_cause_type or failure.exception_type or "unknown type"
        yield {
            "ruleId": UNKNOWN,
            "level": "note",
            "kind": "review",
            "message": {"text": _message(f"{kind}: {failure.root_cause_message or ''}")},
            "locations": _locations(failure.evidence[:1]),
            "partialFingerprints": {"rootCause/v1": failure.fingerprint},
            "occurrenceCount": max(1, failure.count),
            "properties": {
                "deployments": list(failure.deployments),
                "similar": encode(failure.similar),
            },
        }


def _rules(result: Result, used: set[str]) -> list[Json]:
    rules: dict[str, Json] = {}
    for diagnosis in (d for incident in result.incidents for d in incident.diagnoses):
        rules.setdefault(diagnosis.signature, _rule(diagnosis))
    for name in sorted(used & _OWN_RULES.keys()):
        title = _OWN_RULES[name]
        rules[name] = {"id": name, "shortDescription": {"text": title}}
    return [rules[name] for name in sorted(rules)]


def _rule(diagnosis: Diagnosis) -> Json:
    return {
        "id": diagnosis.signature,
        "shortDescription": {"text": _message(diagnosis.title)},
        "fullDescription": {"text": _message(diagnosis.cause) or _message(diagnosis.title)},
        "help": {"text": _message(diagnosis.remediation.summary)},
        "defaultConfiguration": {"level": _LEVELS[diagnosis.severity]},
    }


def _locations(found: Iterable[Evidence]) -> list[Json]:
    return [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": _uri(evidence.path)},
                "region": {
                    "startLine": max(1, evidence.line),
                    "snippet": {"text": evidence.excerpt},
                },
            }
        }
        for evidence in found
    ]


def _uri(path: str) -> str:
    """A relative reference for a relative path, a ``file`` URI for an absolute one, or the URI."""
    scheme, separator, rest = path.partition("://")
    is_uri = bool(separator) and scheme.isalnum()
    quoted = quote(rest if is_uri else path, safe="/", errors="replace")
    if is_uri:
        return f"{scheme}://{quoted}"
    return f"file://{quoted}" if path.startswith("/") else quoted


def _invocation(result: Result) -> Json:
    invocation: Json = {
        "executionSuccessful": True,
        "startTimeUtc": encode(result.run.started_at),
        "toolExecutionNotifications": list(_notifications(result.coverage)),
    }
    if result.run.finished_at is not None:
        invocation["endTimeUtc"] = encode(result.run.finished_at)
    return invocation


def _notifications(coverage: Coverage) -> Iterator[Json]:
    """Skipped input and signatures; viewers show them next to the results."""
    texts: Sequence[str] = [
        *(f"{wording.gap_label(item)}{item.path}: {item.reason}" for item in coverage.quarantined),
        *(f"not evaluated: {s.signature}: {s.reason}" for s in coverage.signatures_skipped),
        *([f"{coverage.truncated} long events truncated"] if coverage.truncated else []),
    ]
    for text in texts:
        yield {"level": "warning", "message": {"text": _message(text)}}


def _message(text: str) -> str:
    escaped = _LINK.sub(lambda found: "\\" + found[0], one_line(text))
    return _PLACEHOLDER.sub(r"{{\1}}", escaped)
