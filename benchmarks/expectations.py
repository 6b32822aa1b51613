"""Compares the results for small inputs with the expected results in ``expected.yaml``.

Each ``expected.yaml`` describes the inputs in the same folder, whose name is the kind of fault. For
each input, it contains the accepted verdicts and signatures at rank 1, and whether the input has no
failure. It may also contain required or forbidden words of the advice, the title, and the report, a
limit for the value of an option, the lowest severity, the Flink version, or the line of the first
fault. ``new: ...`` means any signature that is not listed in ``known-signatures.txt`` in the
checked tree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flink_triage.local import Options, run_local
from flink_triage.model import SEVERITIES, Diagnosis, Incident
from flink_triage.report.formats.result_json import dump_json, to_json

_KEY = re.compile(r"[a-z0-9.\-]+(: .*)?")
_UNITS = {
    **dict.fromkeys(("", "b", "ms"), 1),
    **dict.fromkeys(("k", "kb"), 1 << 10),
    **dict.fromkeys(("m", "mb"), 1 << 20),
    **dict.fromkeys(("g", "gb"), 1 << 30),
    "s": 1_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """One input: the kind of fault, the verdict, and the deviations from ``expected.yaml``."""

    kind: str
    name: str
    is_negative: bool
    verdict: str
    problems: tuple[str, ...]


def check_expectations(tree: Path) -> list[Checked]:
    """Check all inputs that an ``expected.yaml`` below ``tree`` describes."""
    listed = tree / "known-signatures.txt"
    known = frozenset(listed.read_text().split()) if listed.is_file() else frozenset()
    checked = []
    for described in sorted(tree.rglob("expected.yaml")):
        for name, expected in yaml.safe_load(described.read_text())["files"].items():
            path = described.parent / name
            group_by = "directory" if path.is_dir() else "file"
            result = run_local([str(path)], Options(group_by=group_by))
            incident = result.incidents[0] if result.incidents else None
            verdict = incident.verdict if incident is not None else "none"
            shown = dump_json(to_json(result)["incidents"][:1]) if incident is not None else ""
            problems = tuple(_problems(expected, incident, verdict, shown, known))
            is_negative = expected["is_negative"]
            checked.append(Checked(described.parent.name, name, is_negative, verdict, problems))
    return checked


def print_expectations(checked: list[Checked]) -> None:
    if not checked:
        return
    right = [one for one in checked if not one.problems]
    kinds = Counter(one.kind for one in checked)
    met = Counter(one.kind for one in right)
    alarms = [o for o in checked if o.is_negative and o.verdict in ("diagnosed", "undetermined")]
    missed = [o for o in checked if not o.is_negative and o.verdict == "healthy"]
    print(f"as expected      {len(right)} of {len(checked)}")
    print(f"kinds with a hit {sum(met[kind] > 0 for kind in kinds)} of {len(kinds)}")
    print(f"false alarms     {len(alarms)} of {sum(one.is_negative for one in checked)}")
    print(f"called healthy   {len(missed)} of {sum(not one.is_negative for one in checked)}")
    for one in checked:
        if one.problems:
            print(f"OFF    {one.kind}/{one.name}: {'; '.join(one.problems)}")


def _problems(
    expected: dict[str, Any],
    incident: Incident | None,
    verdict: str,
    shown: str,
    known: frozenset[str],
) -> Iterator[str]:
    wanted = _many(expected["verdict"])
    if verdict not in wanted:
        yield f"verdict {verdict}"
    is_named = incident is not None and verdict == "diagnosed"
    first = incident.diagnoses[0] if incident is not None and is_named else None
    signature = first.signature if first is not None else "none"
    if not _is_met(_many(expected["signature"]), signature, known):
        yield f"signature {signature}"
    if first is not None:
        yield from _remedy_problems(expected, first)
    elif "diagnosed" in wanted and {"remedy_must", "remedy_value_above"} & set(expected):
        yield "no remedy"
    for text in expected.get("must_show", ()):
        if dump_json(text)[1:-1] not in shown:
            yield f"does not show {text!r}"
    if expected.get("not_rank1") == signature:
        yield f"rank 1 is {signature}"
    version = incident.flink_version if incident is not None else None
    if expected.get("flink_version", version) != version:
        yield f"version {version}"
    line = incident.first_fault.line if incident is not None and incident.first_fault else None
    if expected.get("first_fault_line", line) != line:
        yield f"first fault on line {line}"


def _remedy_problems(expected: dict[str, Any], first: Diagnosis) -> Iterator[str]:
    remedy = first.remediation
    config = "\n".join(f"{change.key}: {change.value}" for change in remedy.config)
    reasons = (change.reason or "" for change in remedy.config)
    advice = "\n".join((remedy.summary, *remedy.steps, config, *reasons))
    for needed in expected.get("remedy_must", ()):
        if needed not in advice:
            yield f"remedy lacks {needed!r}"
    for banned in expected.get("remedy_must_not", ()):
        is_option = "." in banned and _KEY.fullmatch(banned)
        if banned in (config if is_option else advice):
            yield f"remedy has {banned!r}"
    for key, limit in expected.get("remedy_value_above", {}).items():
        values = [_number(c.value) for c in remedy.config if c.key in key.split(" or ")]
        if not values or not values[0] or values[0] <= limit:
            yield f"{key}: {values} is not above {limit}"
    for banned in expected.get("title_must_not", ()):
        if banned in first.title:
            yield f"title has {banned!r}"
    least = expected.get("severity_at_least")
    if least and SEVERITIES.index(first.severity) > SEVERITIES.index(least):
        yield f"severity {first.severity}"


def _is_met(wanted: list[str], signature: str, known: frozenset[str]) -> bool:
    is_new = signature != "none" and signature not in known
    return any(one == signature or (one.startswith("new:") and is_new) for one in wanted)


def _number(text: str) -> float | None:
    found = re.fullmatch(r"\s*([\d.]+)\s*([a-z]*)\s*", text.lower())
    return float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else None


def _many(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
