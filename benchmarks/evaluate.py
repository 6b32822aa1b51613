"""``make eval``: measures the accuracy on labeled logs, and prints all wrong answers.

A labeled deployment is a folder with ``label.yaml``, or a file listed in an ``index.tsv`` in the
same or a parent folder. For each tree, the product runs once for the folders and once for the
files. The evaluation prints:

- top-1 and top-3 accuracy, and recall of the labeled root cause at any rank
- recall of expected consequences, and false alarms on healthy and foreign logs
- the share of failures without a signature that are not diagnosed
- reliability tables of the stated confidence, and each wrong answer
- the results of two simple methods on the same logs (``benchmarks/baselines.py``)
- how often root cause lines are parsed (``benchmarks/root_lines.py``)

``tests/labels.yaml`` maps labels to signature ids. Inputs that an ``expected.yaml`` describes are
checked against it (``benchmarks/expectations.py``).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.baselines import BASELINES, text_of
from benchmarks.expectations import check_expectations, print_expectations
from benchmarks.root_lines import print_root_lines, root_lines
from flink_triage.local import Options, run_local
from flink_triage.model import Incident, Result
from flink_triage.signatures import SignaturePack, builtin_pack_directory, load_pack

LABELS = Path(__file__).resolve().parents[1] / "tests" / "labels.yaml"
# Labels that mean "no failure of Flink".
_NEGATIVE = frozenset({"none", "negative"})


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labeled input.

    ``root`` is the set of acceptable ids. It is empty for logs that must not raise an alarm, and
    ``None`` for a failure without a signature in the pack.
    """

    path: Path
    label: str
    root: frozenset[str] | None
    consequences: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    labelled: Labelled
    incidents: tuple[Incident, ...]

    @property
    def ranked(self) -> list[str]:
        """Signatures of the leading incident in rank order."""
        return [d.signature for d in self.incidents[0].diagnoses] if self.incidents else []

    @property
    def anywhere(self) -> set[str]:
        return {d.signature for i in self.incidents for d in i.diagnoses}

    @property
    def verdicts(self) -> set[str]:
        return {i.verdict for i in self.incidents}

    @property
    def is_alarm(self) -> bool:
        return any(incident.is_failure for incident in self.incidents)

    def is_top(self, count: int) -> bool:
        return bool(self.labelled.root and self.labelled.root.intersection(self.ranked[:count]))


def find_labelled(tree: Path, labels: dict[str, list[str]]) -> Iterator[Labelled]:
    """All labeled folders and files below ``tree``."""
    for file in sorted(tree.rglob("label.yaml")):
        content = yaml.safe_load(file.read_text())
        label = content.get("root_cause") or content["signature"]
        expected = [*content.get("also_expected_symptoms", [])]
        if content.get("root_cause"):
            expected.insert(0, content["signature"])
        known = tuple(frozenset(labels[e]) for e in expected if labels.get(e))
        yield Labelled(file.parent, label, _root(label, labels), known)
    for index in sorted(tree.rglob("index.tsv")):
        with index.open(newline="") as rows:
            for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
                path = next(index.parent.rglob(row["file"]), None)
                if path is not None:
                    label = row["root_cause_label"]
                    yield Labelled(path, label, _root(label, labels))


def _root(label: str, labels: dict[str, list[str]]) -> frozenset[str] | None:
    if label in _NEGATIVE:
        return frozenset()
    ids = labels.get(label)
    return frozenset(ids) if ids else None


def evaluate(tree: Path, engine: str = "local") -> list[Answer]:
    """Run the product over ``tree``, once for labeled folders and once for labeled files."""
    labelled = list(find_labelled(tree, yaml.safe_load(LABELS.read_text())))
    answers = []
    deployments = [one for one in labelled if one.path.is_dir()]
    files = [one for one in labelled if one.path.is_file()]
    for group, group_by in ((deployments, "directory"), (files, "file")):
        if not group:
            continue
        result = _run([str(tree)], group_by, engine)
        by_input = _incidents_by_input(result, group)
        answers += [Answer(one, tuple(by_input[str(one.path)])) for one in group]
    return answers


def _run(paths: list[str], group_by: str, engine: str) -> Result:
    if engine == "local":
        return run_local(paths, Options(group_by=group_by))
    import tempfile

    from flink_triage.cli.spark_commands import run_on_spark

    with tempfile.TemporaryDirectory() as warehouse:
        return run_on_spark(paths, Options(group_by=group_by), warehouse)


def _incidents_by_input(result: Result, group: Sequence[Labelled]) -> dict[str, list[Incident]]:
    """Incidents by input. Deployment names come from paths; the longest matching path is used."""
    found: dict[str, list[Incident]] = {str(one.path): [] for one in group}
    for incident in result.incidents:
        fits = [p for p in found if _names(incident.deployment, p)]
        if fits:
            found[max(fits, key=len)].append(incident)
    return found


def _names(deployment: str, path: str) -> bool:
    return path == deployment or path.endswith("/" + deployment) or deployment.startswith(path)


def print_scores(answers: Sequence[Answer]) -> None:
    positives = [a for a in answers if a.labelled.root]
    negatives = [a for a in answers if a.labelled.root is not None and not a.labelled.root]
    unknown = [a for a in answers if a.labelled.root is None]
    top1 = [a for a in positives if a.is_top(1)]
    top3 = [a for a in positives if a.is_top(3)]
    recalled = [a for a in positives if a.labelled.root & a.anywhere]  # type: ignore[operator]
    alarms = [a for a in negatives if a.is_alarm]
    print(f"top-1 accuracy   {_share(top1, positives)}")
    print(f"within first 3   {_share(top3, positives)}")
    print(f"recall, any rank {_share(recalled, positives)}")
    consequences = [(a, c) for a in positives for c in a.labelled.consequences]
    seen = [1 for a, c in consequences if c & a.anywhere]
    print(f"consequences     {_share(seen, consequences)}")
    print(f"false alarms     {_share(alarms, negatives)} of healthy or foreign logs")
    honest = [a for a in unknown if "diagnosed" not in a.verdicts]
    print(f"undetermined     {_share(honest, unknown)} of failures without a signature")
    _print_reliability(positives)
    for answer in answers:
        line = _miss(answer)
        if line:
            print(line)


def print_baselines(answers: Sequence[Answer], pack: SignaturePack) -> None:
    """Print the accuracy of two simple methods on the same logs."""
    texts = [(answer.labelled, text_of(answer.labelled.path)) for answer in answers]
    for name, baseline in BASELINES.items():
        rankings = [(labelled.root, baseline(text, pack)) for labelled, text in texts]
        positives = [(root, ranking) for root, ranking in rankings if root]
        negatives = [ranking for root, ranking in rankings if root is not None and not root]
        first = [1 for root, ranking in positives if root & {*ranking[:1]}]
        third = [1 for root, ranking in positives if root & {*ranking[:3]}]
        print(f"{name + ':':<25} top-1 {_share(first, positives)}")
        print(f"{'':<25} within first 3 {_share(third, positives)}")
        print(f"{'':<25} false alarms {_share([r for r in negatives if r], negatives)}")


def _share(part: Sequence[object], whole: Sequence[object]) -> str:
    percent = 100.0 * len(part) / len(whole) if whole else 100.0
    return f"{percent:5.1f} %  ({len(part)} of {len(whole)})"


def _print_reliability(positives: Sequence[Answer]) -> None:
    print("stated confidence -> share right")
    for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)):
        inside = [
            a
            for a in positives
            if a.ranked and low <= a.incidents[0].diagnoses[0].confidence < high
        ]
        if inside:
            right = [a for a in inside if a.is_top(1)]
            print(f"  {low:.2f}-{min(high, 1.0):.2f}      {_share(right, inside)}")


def _miss(answer: Answer) -> str | None:
    labelled, name = answer.labelled, answer.labelled.path.name
    answered = ", ".join(answer.ranked[:3]) or "/".join(sorted(answer.verdicts)) or "nothing"
    if labelled.root is None:
        if "diagnosed" not in answer.verdicts:
            return None
        return f"GUESS  {name}: no signature for {labelled.label}; said {answered}"
    if not labelled.root:
        return f"ALARM  {name}: {labelled.label}; said {answered}" if answer.is_alarm else None
    if not answer.is_top(1):
        wanted = " or ".join(sorted(labelled.root))
        return f"MISS   {name}: wanted {wanted}; said {answered}"
    lost = [c for c in labelled.consequences if not c & answer.anywhere]
    return f"PART   {name}: no {[sorted(c) for c in lost]}; said {answered}" if lost else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    arguments = parser.parse_args(argv)
    missing = [str(t) for t in arguments.trees if not t.exists()]
    if missing:
        print(f"evaluate: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    for tree in arguments.trees:
        print(f"\n== {tree}")
        answers = evaluate(tree, arguments.engine)
        if answers:
            print_scores(answers)
            print_baselines(answers, load_pack([builtin_pack_directory()]))
            print_root_lines(root_lines(tree))
        print_expectations(check_expectations(tree))
    _print_calibration()
    return 0


def _print_calibration() -> None:
    """Print the cross-validated reliability of the stated confidence, from ``calibration.tsv``."""
    from benchmarks.calibrate import print_reliability, read_samples

    print()
    print_reliability(read_samples())


if __name__ == "__main__":
    sys.exit(main())
