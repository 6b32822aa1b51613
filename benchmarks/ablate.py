"""``make ablate``: measures the effect of each scoring rule and context rule on labeled logs.

Every labeled log is read once and diagnosed again without each rule of `SCORING` and `CONTEXT`. Two
tables count, per rule, the logs whose leading incident changes: its first answer (correct with the
rule and wrong without it, or vice versa), its first three answers, and its verdict or severity. For
a log without a failure of Flink, the correct answer is no incident. For a failure without a
signature, no answer is correct.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from benchmarks.evaluate import LABELS, Labelled, find_labelled
from flink_triage.diagnosis import diagnose_episodes
from flink_triage.diagnosis.context.rules import CONTEXT
from flink_triage.diagnosis.ranking.rank import BEHIND_CAUSE
from flink_triage.diagnosis.ranking.scoring import SCORING
from flink_triage.local import Options, scan_inputs
from flink_triage.model import Observation
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import SignaturePack

# The ids of the rules, each with its basis or source.
SCORING_RULES = {rule.id: rule.basis for rule in SCORING} | {BEHIND_CAUSE: "causes precede effects"}
CONTEXT_RULES = {rule.id: rule.source for rule in CONTEXT}
RULES = (*SCORING_RULES, *CONTEXT_RULES)


@dataclass(frozen=True, slots=True)
class Leading:
    """The first incident: signatures in rank order, and the verdict with the severity of rank 1.

    All are empty if there is no incident.
    """

    ranked: tuple[str, ...] = ()
    verdict: tuple[str, str] = ("", "")

    def is_right(self, root: frozenset[str] | None) -> bool:
        """Whether the first answer matches the label; ``root`` is that of `Labelled`."""
        if root is not None and not root:
            return self == Leading()
        return bool((root or frozenset()).intersection(self.ranked[:1]))


def ablate(trees: Sequence[Path]) -> tuple[int, dict[str, Counter[str]]]:
    """The number of logs, and the number of changed logs per rule and kind of change."""
    labels = yaml.safe_load(LABELS.read_text())
    changes: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    count = 0
    for tree in trees:
        for labelled in find_labelled(tree, labels):
            count += 1
            for rule, change in _changes(labelled):
                changes[rule][change] += 1
    return count, changes


def _changes(labelled: Labelled) -> Iterator[tuple[str, str]]:
    scanned = scan_inputs([str(labelled.path)], Options(), lambda done, total: None)
    observations = list(scanned.observations())
    before = _leading(observations, scanned.pack)
    for rule in RULES:
        after = _leading(observations, scanned.pack, rule)
        was_right, is_right = (one.is_right(labelled.root) for one in (before, after))
        if was_right != is_right:
            yield rule, "worse" if was_right else "better"
        if after.ranked[:3] != before.ranked[:3]:
            yield rule, "first three"
        if after.verdict != before.verdict:
            yield rule, "verdict or severity"


def _leading(
    observations: Sequence[Observation], pack: SignaturePack, without: str | None = None
) -> Leading:
    settings = DEFAULT_SETTINGS
    if without is not None:
        settings = replace(settings, rules_left_out=frozenset({without}))
    found = diagnose_episodes("d", observations, pack, OptionTable.load(), settings)
    for incident, candidates in found[:1]:
        severity = incident.diagnoses[0].severity if incident.diagnoses else ""
        return Leading(tuple(c.id for c in candidates), (incident.verdict, severity))
    return Leading()


_COLUMNS = ("worse", "better", "first three", "verdict or severity")


def table(rules: Mapping[str, str], changes: Mapping[str, Counter[str]]) -> str:
    """A Markdown table with one row per rule, and one column per kind of change."""
    lines = [
        f"| left out | {' | '.join(_COLUMNS)} | basis |",
        f"|---|{'---:|' * len(_COLUMNS)}---|",
    ]
    for rule, basis in rules.items():
        cells = " | ".join(str(changes[rule][column]) for column in _COLUMNS)
        lines.append(f"| `{rule}` | {cells} | {basis} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    count, changes = ablate(parser.parse_args(argv).trees)
    print(f"{count} logs")
    for rules in (SCORING_RULES, CONTEXT_RULES):
        print(f"\n{table(rules, changes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
