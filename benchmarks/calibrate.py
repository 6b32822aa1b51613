"""``make calibrate``: fits the stated confidence to the labeled logs, and tests the fit.

Answers for complete logs are nearly always correct, so they reveal little about wrong answers.
Users often have incomplete logs. Each labeled deployment is therefore diagnosed in several views
(the whole deployment, each process, each file, the first half, the second half), and each excerpt
is diagnosed as is. Every ranked candidate of the leading incident of a view is one sample: its
kind, and whether it is the labeled root cause.

The share of correct labels of a kind is shrunk toward the share of the broader kind, with a weight
of ``_STRENGTH`` labels (the mean of a Beta posterior), so that rare kinds have little influence.
``calibration.tsv`` contains the samples, and ``diagnosis/ranking/confidence.tsv`` is computed from
them. Cross-validation leaves out one label at a time, because views of one failure are similar.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.evaluate import Labelled, find_labelled
from flink_triage.diagnosis import diagnose_episodes
from flink_triage.diagnosis.ranking.causality import Candidate
from flink_triage.diagnosis.ranking.confidence import kind_of
from flink_triage.local import Options, scan_inputs
from flink_triage.model import Observation
from flink_triage.remediation import OptionTable
from flink_triage.signatures import SignaturePack

SAMPLES = Path(__file__).with_name("calibration.tsv")
_ROOT = Path(__file__).resolve().parents[1]
TABLE = _ROOT / "pipeline" / "flink_triage" / "diagnosis" / "ranking" / "confidence.tsv"
_LABELS = _ROOT / "tests" / "labels.yaml"
# Weight of the broader kind, in labels; for weights from 1 to 8, the cross-validated log loss is
# 0.12 to 0.13.
_STRENGTH = 4.0
# A few dozen samples do not make an answer certain.
_LOWEST, _HIGHEST = 0.01, 0.98
_FIELDS = ("group", "view", "kind", "is_right", "count")


@dataclass(frozen=True, slots=True)
class Sample:
    """``count`` candidates of one kind in views of one labeled failure."""

    group: str
    view: str
    kind: str
    is_right: bool
    count: int = 1


def sample_trees(trees: Sequence[Path]) -> list[Sample]:
    labels = yaml.safe_load(_LABELS.read_text())
    samples: dict[tuple[str, str, str, bool], int] = {}
    for tree in trees:
        for labelled in find_labelled(tree, labels):
            if labelled.root:
                for view, kind, is_right in _samples(labelled, labelled.root):
                    key = (labelled.label, view, kind, is_right)
                    samples[key] = samples.get(key, 0) + 1
    return [Sample(*key, count) for key, count in sorted(samples.items())]


def _samples(labelled: Labelled, root: frozenset[str]) -> Iterator[tuple[str, str, bool]]:
    options = Options()
    scanned = scan_inputs([str(labelled.path)], options, lambda done, total: None)
    observations = list(scanned.observations())
    for view, of_view in _views(observations, is_excerpt=labelled.path.is_file()):
        ranked = _leading(of_view, scanned.pack)
        for candidate in ranked:
            yield view, kind_of(candidate, ranked), candidate.id in root


def _views(
    observations: list[Observation], *, is_excerpt: bool
) -> Iterator[tuple[str, list[Observation]]]:
    yield "excerpt" if is_excerpt else "whole", observations
    if is_excerpt:
        return
    for process in ("jobmanager", "taskmanager"):
        yield process, [o for o in observations if o.process == process]
    for path in sorted({o.event.path for o in observations}):
        yield "file", [o for o in observations if o.event.path == path]
    times = sorted(o.event.logged_at for o in observations if o.event.logged_at)
    if times:
        middle = times[0] + (times[-1] - times[0]) / 2
        for view, is_first in (("first half", True), ("second half", False)):
            half = [o for o in observations if o.event.logged_at]
            yield view, [o for o in half if ((o.event.logged_at or middle) < middle) is is_first]


def _leading(observations: Sequence[Observation], pack: SignaturePack) -> list[Candidate]:
    found = diagnose_episodes("d", observations, pack, OptionTable.load())
    return found[0][1] if found else []


# --- fitting -----------------------------------------------------------------------------------


def fit(samples: Iterable[Sample]) -> dict[str, tuple[float, int, float]]:
    """kind -> (correct labels, all labels, confidence), for each kind and each broader kind.

    Views of one label are similar: together they count as one, partially correct, sample of a kind.
    """
    counts: dict[str, dict[str, list[int]]] = {}
    for sample in samples:
        kind = sample.kind
        while kind:
            of_label = counts.setdefault(kind, {}).setdefault(sample.group, [0, 0])
            of_label[0] += sample.count * sample.is_right
            of_label[1] += sample.count
            kind = kind.rpartition("/")[0]
    table: dict[str, tuple[float, int, float]] = {}
    for kind in sorted(counts, key=lambda kind: (kind.count("/"), kind)):
        labels = counts[kind].values()
        right, seen = sum(r / n for r, n in labels), len(labels)
        wider = table.get(kind.rpartition("/")[0])
        prior = wider[2] if wider else 0.5
        # A kind that equals its broader kind adds no information.
        is_same = wider is not None and wider[:2] == (right, seen)
        share = prior if is_same else (right + _STRENGTH * prior) / (seen + _STRENGTH)
        table[kind] = (right, seen, min(_HIGHEST, max(_LOWEST, share)))
    return table


def look_up(table: Mapping[str, tuple[float, int, float]], kind: str) -> float:
    while kind and kind not in table:
        kind = kind.rpartition("/")[0]
    return table[kind][2] if kind else 0.5


def cross_validated(samples: Sequence[Sample]) -> list[tuple[float, Sample]]:
    """Each sample with its confidence in a table that was fitted without its label."""
    stated = []
    for group in sorted({sample.group for sample in samples}):
        table = fit(sample for sample in samples if sample.group != group)
        stated += [(look_up(table, s.kind), s) for s in samples if s.group == group]
    return stated


def print_reliability(samples: Sequence[Sample]) -> None:
    """Print stated and measured confidence; each label uses a table fitted without it."""
    stated = [(p, s) for p, s in cross_validated(samples) if s.kind.startswith("leading")]
    labels = len({sample.group for _, sample in stated})
    total = sum(sample.count for _, sample in stated)
    print(f"confidence, cross-validated over {labels} labels, {total} views of labelled logs")
    print("  stated      answers  mean stated  share right")
    error = 0.0
    for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)):
        inside = [(p, s) for p, s in stated if low <= p < high]
        count = sum(s.count for _, s in inside)
        if count:
            mean = sum(p * s.count for p, s in inside) / count
            right = sum(s.count for _, s in inside if s.is_right) / count
            error += abs(mean - right) * count / total
            print(f"  {low:.2f}-{min(high, 1.0):.2f}  {count:9d}  {mean:11.2f}  {right:11.2f}")
    brier = sum((p - s.is_right) ** 2 * s.count for p, s in stated) / total
    print(f"  mean calibration error {error:.3f}, Brier score {brier:.3f}")


# --- files -------------------------------------------------------------------------------------


def read_samples(path: Path = SAMPLES) -> list[Sample]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Sample(
                row["group"], row["view"], row["kind"], row["is_right"] == "yes", int(row["count"])
            )
            for row in csv.DictReader(lines, delimiter="\t")
        ]


def render_table(samples: Sequence[Sample]) -> str:
    views = sum(s.count for s in samples if s.kind.startswith("leading"))
    labels = len({sample.group for sample in samples})
    lines = [
        f"# Written by benchmarks/calibrate.py from {views} views of logs with {labels} labels.",
        "kind\tright\tseen\tconfidence",
    ]
    lines += [f"{k}\t{r:.2f}\t{n}\t{p:.2f}" for k, (r, n, p) in sorted(fit(samples).items())]
    return "\n".join(lines) + "\n"


def _write_samples(samples: Sequence[Sample]) -> None:
    lines = ["\t".join(_FIELDS)]
    for s in samples:
        lines.append(f"{s.group}\t{s.view}\t{s.kind}\t{'yes' if s.is_right else 'no'}\t{s.count}")
    SAMPLES.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", nargs="+", type=Path)
    arguments = parser.parse_args(argv)
    missing = [str(t) for t in arguments.trees if not t.exists()]
    if missing:
        print(f"calibrate: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    samples = sample_trees(arguments.trees)
    _write_samples(samples)
    TABLE.write_text(render_table(samples), encoding="utf-8")
    print_reliability(samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
