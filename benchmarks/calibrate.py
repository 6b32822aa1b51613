"""``make calibrate``: fits the stated confidence to labeled answers, and tests the fit.

The answers have three origins:

- ``logs``: answers for logs whose label is a cause in the pack. Most answers for complete logs are
  correct, so they contain little information about wrong answers, and users often have incomplete
  logs. Each labeled folder is therefore diagnosed in several views: the whole deployment, the
  JobManager, the TaskManagers, each file, and the two halves of its time span. A labeled file has
  one view. Each view is diagnosed as recorded, and without the matches of its cause, which
  represents a cause that the signatures do not contain. The first answers of all views of a label
  have a total weight of one.
- ``examples``: first answers for the examples of signatures that may be an answer, except symptoms
  and signatures with ``all`` or ``sequence``. Each example is diagnosed as printed, and without the
  alternatives that match only that example, which represents a message that the signatures do not
  contain.
- ``blind``: the first diagnoses for seven of the blind collections (docs/accuracy.md), before the
  signatures were corrected. The excerpts are not part of the source code;
  ``blind_answers.tsv`` contains the properties of the answers. Most first answers of the first
  collection were not recorded.

``calibration.tsv`` contains the weights of all answers. ``diagnosis/ranking/confidence.tsv``
contains the coefficients of a logistic regression on their properties. For the test, each answer is
judged with coefficients that were fitted without the answers of its source: a label, a library, or
a collection.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from benchmarks.closest import observe
from benchmarks.evaluate import LABELS, Labelled, find_labelled
from flink_triage.diagnosis import diagnose_episodes
from flink_triage.diagnosis.ranking.confidence import (
    BEHIND,
    FIRST,
    HIGHEST,
    LOWEST,
    PROPERTIES,
    REPORTING,
    properties_of,
)
from flink_triage.local import Options, scan_inputs
from flink_triage.model import Match, Observation
from flink_triage.remediation import OptionTable
from flink_triage.signatures import (
    Matcher,
    Signature,
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    load_pack,
)
from flink_triage.signatures.leave_one_out import library_of, without_each_example
from flink_triage.signatures.samples import match_text

SAMPLES = Path(__file__).with_name("calibration.tsv")
BLIND = Path(__file__).with_name("blind_answers.tsv")
_ROOT = Path(__file__).resolve().parents[1]
TABLE = _ROOT / "pipeline" / "flink_triage" / "diagnosis" / "ranking" / "confidence.tsv"
# The weight of a log or example as recorded. The rest is the weight of the log without the matches
# of its cause, or of the example without the alternatives that match only this example.
# With these weights, the share of examples whose first diagnosis is correct is 77 %, as in the
# blind collections.
_KNOWN_SHARE = 0.7
# Each answer has one of these properties. Only ``FIRST`` is combined with other properties.
_BASES = (FIRST, BEHIND, REPORTING)
_COLUMNS = (*_BASES, *(each.id for each in PROPERTIES))
# Coefficients of properties have a normal prior with this standard deviation, so that a property of
# few answers changes little.
_PRIOR = 1.0
_ROUNDS = 50
# Limits between the bins of the stated confidence; each bin has at least twenty answers.
_BINS = (0.0, 0.8, 0.9, 0.95, 0.97, 1.0)
_FIELDS = ("origin", "source", "properties", "right", "wrong")

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """The weights of correct and wrong answers from one source that have the same properties."""

    origin: str
    source: str
    properties: tuple[str, ...]
    right: float
    wrong: float

    @property
    def weight(self) -> float:
        return self.right + self.wrong


# One answer: its origin, its source, its properties, whether it is correct, and its weight.
_Answer = tuple[str, str, tuple[str, ...], bool, float]


def sample_all(trees: Sequence[Path]) -> list[Sample]:
    """The answers of all origins; the weights of answers with the same properties are added up."""
    pack = load_pack([builtin_pack_directory()])
    options = OptionTable.load()
    weights: dict[tuple[str, str, tuple[str, ...]], list[float]] = {}
    for origin, source, properties, is_right, weight in (
        *_from_logs(trees, options),
        *_from_examples(pack, options),
        *_from_blind_collections(),
    ):
        weights.setdefault((origin, source, properties), [0.0, 0.0])[not is_right] += weight
    return [
        Sample(*key, round(right, 3), round(wrong, 3))
        for key, (right, wrong) in sorted(weights.items())
    ]


def _from_logs(trees: Sequence[Path], options: OptionTable) -> Iterator[_Answer]:
    labels = yaml.safe_load(LABELS.read_text())
    by_label: dict[str, list[tuple[tuple[str, ...], bool, float]]] = {}
    for tree in trees:
        for labelled in find_labelled(tree, labels):
            if labelled.root:
                views = _of_views(labelled, labelled.root, options)
                by_label.setdefault(labelled.label, []).extend(views)
    for label, answers in by_label.items():
        total = sum(weight for properties, _, weight in answers if FIRST in properties)
        for properties, is_right, weight in answers:
            yield "logs", label, properties, is_right, weight / (total or 1.0)


def _of_views(
    labelled: Labelled, root: frozenset[str], options: OptionTable
) -> Iterator[tuple[tuple[str, ...], bool, float]]:
    scanned = scan_inputs([str(labelled.path)], Options(), lambda done, total: None)
    observations = list(scanned.observations())
    views = [observations] if labelled.path.is_file() else list(_views(observations))
    for view in views:
        left = [_without(observation, root) for observation in view]
        for seen, weight in ((view, _KNOWN_SHARE), (left, 1.0 - _KNOWN_SHARE)):
            for signature, properties in answers_of(seen, scanned.pack, options):
                yield properties, signature in root, weight


def _without(observation: Observation, signatures: frozenset[str]) -> Observation:
    left = tuple(match for match in observation.matches if match.signature not in signatures)
    return replace(observation, matches=left)


def _views(observations: list[Observation]) -> Iterator[list[Observation]]:
    yield observations
    for process in ("jobmanager", "taskmanager"):
        yield [o for o in observations if o.process == process]
    for path in sorted({o.event.path for o in observations}):
        yield [o for o in observations if o.event.path == path]
    times = sorted(o.event.logged_at for o in observations if o.event.logged_at)
    if times:
        middle = times[0] + (times[-1] - times[0]) / 2
        for is_first in (True, False):
            half = [o for o in observations if o.event.logged_at]
            yield [o for o in half if ((o.event.logged_at or middle) < middle) is is_first]


def _from_examples(pack: SignaturePack, options: OptionTable) -> Iterator[_Answer]:
    for signature in pack.signatures.values():
        # An example of a symptom does not show whether the symptom has a cause.
        if signature.mode != "any" or not signature.is_answer or signature.role == "symptom":
            continue
        texts = signature.examples.match
        for text, reduced in zip(texts, without_each_example(signature), strict=True):
            known = observe(text)
            left = replace(known, matches=_matches_of(known, signature, reduced, text))
            for observation, weight in ((known, _KNOWN_SHARE), (left, 1.0 - _KNOWN_SHARE)):
                for named, properties in answers_of([observation], pack, options)[:1]:
                    is_right = named == signature.id
                    yield "examples", library_of(text), properties, is_right, weight


def _matches_of(
    known: Observation, signature: Signature, reduced: Signature, text: str
) -> tuple[Match, ...]:
    """The matches of the example with ``reduced`` in place of ``signature``."""
    matches = [*_without(known, frozenset({signature.id})).matches]
    for match in match_text(Matcher(build_pack([reduced])), text) if reduced.alternatives else ():
        alternative = reduced.alternatives[match.alternative]
        number = signature.alternatives.index(alternative)
        matches.append(replace(match, alternative=number))
    return tuple(matches)


def answers_of(
    observations: Sequence[Observation], pack: SignaturePack, options: OptionTable
) -> list[tuple[str, tuple[str, ...]]]:
    """The ranked signatures of the leading incident, with their properties."""
    found = diagnose_episodes("d", observations, pack, options)
    if not found:
        return []
    incident, ranked = found[0]
    return [(each.id, properties_of(each, ranked, incident.outcome)) for each in ranked]


def _from_blind_collections() -> Iterator[_Answer]:
    with BLIND.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            properties = tuple(row["properties"].split())
            for is_right, count in ((True, row["right"]), (False, row["wrong"])):
                yield "blind", row["collection"], properties, is_right, float(count)


# --- fitting -----------------------------------------------------------------------------------


def fit(samples: Sequence[Sample], start: Array | None = None) -> Array:
    """The log odds of each property: a penalized logistic regression by Newton's method."""
    design = _design(samples)
    right = np.array([sample.right for sample in samples])
    weight = np.array([sample.weight for sample in samples])
    # Bases have a prior that is too weak to matter, but keeps the equations solvable.
    penalty = np.where(np.arange(len(_COLUMNS)) < len(_BASES), 0.01, 1.0 / _PRIOR**2)
    log_odds = np.zeros(len(_COLUMNS)) if start is None else start.copy()
    for _ in range(_ROUNDS):
        shares = _shares(design, log_odds)
        gradient = design.T @ (weight * shares - right) + penalty * log_odds
        hessian = (design * (weight * shares * (1.0 - shares))[:, None]).T @ design
        step = np.linalg.solve(hessian + np.diag(penalty), gradient)
        log_odds -= step
        if np.abs(step).max() < 1e-9:
            break
    return log_odds


def _design(samples: Sequence[Sample]) -> Array:
    return np.array([[float(name in s.properties) for name in _COLUMNS] for s in samples])


def stated(samples: Sequence[Sample], log_odds: Array) -> Array:
    return np.clip(_shares(_design(samples), log_odds), LOWEST, HIGHEST)


def _shares(design: Array, log_odds: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-design @ log_odds))


def cross_validated(samples: Sequence[Sample]) -> list[tuple[float, Sample]]:
    """Each sample with the confidence that is stated without the samples of its source."""
    start = fit(samples)
    judged: list[tuple[float, Sample]] = []
    for source in sorted({(s.origin, s.source) for s in samples}):
        inside = [s for s in samples if (s.origin, s.source) == source]
        rest = [s for s in samples if (s.origin, s.source) != source]
        shares = stated(inside, fit(rest, start))
        judged += zip(map(float, shares), inside, strict=True)
    return judged


def print_reliability(samples: Sequence[Sample]) -> None:
    """Print stated and measured confidence; coefficients are fitted without the same source."""
    judged = [(p, s) for p, s in cross_validated(samples) if FIRST in s.properties]
    sources = len({(s.origin, s.source) for _, s in judged})
    total = sum(s.weight for _, s in judged)
    print(f"confidence, cross-validated over {sources} sources, {total:.0f} answers (weights)")
    print("  stated      answers  mean stated  share right  95 % interval")
    for low, high in pairwise(_BINS):
        inside = [(p, s) for p, s in judged if low <= p < high]
        count = sum(s.weight for _, s in inside)
        if count:
            mean = sum(p * s.weight for p, s in inside) / count
            share = sum(s.right for _, s in inside) / count
            lower, upper = wilson(share, count)
            print(
                f"  {low:.2f}-{high:.2f}  {count:9.0f}  {mean:11.2f}  {share:11.2f}"
                f"  {lower:.2f}-{upper:.2f}"
            )
    for name in (*sorted({s.origin for _, s in judged}), "all"):
        inside = [(p, s) for p, s in judged if name in (s.origin, "all")]
        own, constant = brier(inside), brier(_constant(inside))
        print(f"  Brier score, {name + ':':9} {own:.4f}; of a constant: {constant:.4f}")


def wilson(share: float, count: float) -> tuple[float, float]:
    """The 95 % interval of a measured share (Wilson score)."""
    z = 1.96
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return (middle - spread) / scale, (middle + spread) / scale


def brier(judged: Iterable[tuple[float, Sample]]) -> float:
    """The mean squared difference between the stated confidence and the result, 0 or 1."""
    squares = [(s.right * (1 - p) ** 2 + s.wrong * p**2, s.weight) for p, s in judged]
    return sum(square for square, _ in squares) / sum(weight for _, weight in squares)


def _constant(judged: Sequence[tuple[float, Sample]]) -> list[tuple[float, Sample]]:
    share = sum(s.right for _, s in judged) / sum(s.weight for _, s in judged)
    return [(share, s) for _, s in judged]


# --- files -------------------------------------------------------------------------------------


def read_samples(path: Path = SAMPLES) -> list[Sample]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Sample(
                row["origin"],
                row["source"],
                tuple(row["properties"].split()),
                float(row["right"]),
                float(row["wrong"]),
            )
            for row in csv.DictReader(lines, delimiter="\t")
        ]


def render_table(samples: Sequence[Sample]) -> str:
    lines = ["# Written by benchmarks/calibrate.py.", "property\tlog_odds\tanswers\tmeaning"]
    meanings = {each.id: each.meaning for each in PROPERTIES}
    for name, log_odds in zip(_COLUMNS, fit(samples), strict=True):
        answers = sum(s.weight for s in samples if name in s.properties)
        lines.append(f"{name}\t{log_odds:.2f}\t{answers:.0f}\t{meanings.get(name, '')}".rstrip())
    return "\n".join(lines) + "\n"


def _write_samples(samples: Sequence[Sample]) -> None:
    lines = ["\t".join(_FIELDS)]
    for s in samples:
        lines.append(f"{s.origin}\t{s.source}\t{' '.join(s.properties)}\t{s.right:g}\t{s.wrong:g}")
    SAMPLES.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", nargs="+", type=Path)
    arguments = parser.parse_args(argv)
    missing = [str(t) for t in arguments.trees if not t.exists()]
    if missing:
        print(f"calibrate: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    samples = sample_all(arguments.trees)
    _write_samples(samples)
    TABLE.write_text(render_table(samples), encoding="utf-8")
    print_reliability(samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
