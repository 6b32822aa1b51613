"""``make bench``: compares runs of flink-triage with other programs, or with each other.

    python -m benchmarks.bench --cases sparse,dense --megabytes 256 --pairs 3

Each case compares two jobs, which run alternately as separate processes. Both receive the same
logs, except in the case ``size``. A marginal case runs both jobs with logs of two sizes and
compares the differences in time, so that Spark startup does not distort the result. For each case,
the benchmark prints the median ratio of the times (below 1: the first job takes less time), the
target ratio, the median rate and CPU time per MB (10^6 bytes; see ``watch``) of both jobs, and the
peak resident memory of the JVM and of the largest Python process of the first job. At the end, it
prints the machine load: on a busy machine, only the ratios are meaningful.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.corpus import Recipe, write_recipe, write_signatures
from benchmarks.floods import FLOODS
from benchmarks.watch import Measured, measure


@dataclass(frozen=True, slots=True)
class Work:
    """A side (see ``sides``) that processes a corpus.

    If ``cores`` is 0, the number of cores is not limited. ``signatures`` is the number of
    signatures that are added to the pack.
    """

    side: str
    recipe: Recipe
    cores: int = 0
    signatures: int = 0

    def scaled(self, factor: float) -> Work:
        megabytes = max(1, round(self.recipe.megabytes * factor))
        return replace(self, recipe=replace(self.recipe, megabytes=megabytes))


@dataclass(frozen=True, slots=True)
class Case:
    """A comparison; ``wanted`` is the maximum acceptable ratio of ``ours`` to ``peer``."""

    title: str
    ours: Work
    peer: Work
    wanted: float
    is_marginal: bool = False


def cases_of(megabytes: int) -> Mapping[str, Case]:
    sparse, dense = Recipe("folders", megabytes, 0.01), Recipe("folders", megabytes, 0.3)
    tiny = Recipe("tiny", max(1, megabytes // 4), 0.01)
    small = Recipe("folders", 5, 0.01)
    floods = {
        f"{side}-{form}": Case(
            f"{side}, flood of {form}, marginal, against the copy",
            Work(side, Recipe(form, megabytes, 0)),
            Work("copy", Recipe(form, megabytes, 0)),
            1.0,
            True,
        )
        for form in FLOODS
        for side in ("run", "diagnose")
    }
    run, copy = Work("run", sparse), Work("copy", sparse)
    return {
        "sparse": Case("sparse, marginal, against the copy", run, copy, 0.40, True),
        "sparse-whole": Case("sparse, whole, against the copy", run, copy, 0.90),
        "dense": Case(
            "dense, marginal, against the copy",
            Work("run", dense),
            Work("copy", dense),
            0.80,
            True,
        ),
        "udf": Case("against a Python UDF", run, Work("udf", sparse), 1 / 12, True),
        "rlike": Case("against rlike x 8", run, Work("rlike", sparse), 1 / 4, True),
        "gzip": Case(
            "gzip, against the copy",
            Work("run", replace(sparse, form="gzip")),
            Work("copy", replace(sparse, form="gzip")),
            0.80,
        ),
        "one-file": Case(
            "one big file, against the copy",
            Work("run", replace(sparse, form="one")),
            Work("copy", replace(sparse, form="one")),
            0.90,
        ),
        "tiny-files": Case(
            "files of 4 KiB, against the copy", Work("run", tiny), Work("copy", tiny), 1.0
        ),
        "signatures-100": Case(
            "100 signatures more, against the pack alone", replace(run, signatures=100), run, 1.15
        ),
        "signatures-1000": Case(
            "1,000 signatures more, against the pack alone",
            replace(run, signatures=1000),
            run,
            1.15,
        ),
        "size": Case("ten times the bytes, against once", run.scaled(10), run, 9.5),
        "cores": Case(
            "two cores, marginal, against one",
            replace(run, cores=2),
            replace(run, cores=1),
            1 / 1.7,
            True,
        ),
        "small": Case(
            "5 MiB, against a bare session that writes and reads a row",
            Work("run", small),
            Work("bare", small),
            1.8,
        ),
        "diagnose": Case(
            "diagnose, against ripgrep with our literals",
            Work("diagnose", sparse),
            Work("ripgrep", sparse),
            6.0,
        ),
        "drain3": Case(
            "diagnose, against Drain3",
            Work("diagnose", sparse.scaled_to(16)),
            Work("drain3", sparse.scaled_to(16)),
            1.0,
        ),
        **floods,
    }


@contextmanager
def _scratch(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def perform(work: Work, scratch: Path) -> Measured:
    """Run one job as a separate process; its corpus is created once and kept in ``scratch``."""
    corpus = write_recipe(work.recipe, scratch / "corpora")
    with tempfile.TemporaryDirectory(dir=scratch) as output:
        command = [sys.executable, "-m", "benchmarks.sides", work.side]
        command += ["--corpus", str(corpus), "--output", f"{output}/out"]
        command += ["--master", f"local[{work.cores or '*'}]"]
        if work.cores:
            command += ["--workers", str(work.cores)]
        if work.signatures:
            command += ["--signatures", str(write_signatures(work.signatures, scratch))]
        return measure(command)


@dataclass(frozen=True, slots=True)
class Outcome:
    case: Case
    ratios: Sequence[float]
    ours_ms_per_mb: float
    peer_ms_per_mb: float
    ours_mb_per_second: float
    peer_mb_per_second: float
    jvm_mb: float
    python_mb: float

    def row(self) -> str:
        ratio = statistics.median(self.ratios)
        spread = f"{min(self.ratios):.2f}-{max(self.ratios):.2f}"
        sign = "met" if ratio <= self.case.wanted else "not met"
        return (
            f"| {self.case.title} | {ratio:.2f} ({spread}) | {self.case.wanted:.2f} | {sign} "
            f"| {self.ours_mb_per_second:.0f} | {self.peer_mb_per_second:.0f} "
            f"| {self.ours_ms_per_mb:.1f} | {self.peer_ms_per_mb:.1f} "
            f"| {self.jvm_mb:.0f} | {self.python_mb:.0f} |"
        )


HEADING = (
    "| case | ratio (spread) | target | | ours MB/s | peer MB/s "
    "| ours ms/MB | peer ms/MB | JVM MB | Python MB |\n|---|---|---|---|---|---|---|---|---|---|"
)


def compare(case: Case, pairs: int, scale: float, scratch: Path) -> Outcome:
    """Run pairs in alternating order, so that neither side always has a warm page cache."""
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    used: dict[str, list[float]] = {"ours": [], "peer": []}
    jvm = python = 0
    for pair in range(pairs):
        for name in ("ours", "peer") if pair % 2 == 0 else ("peer", "ours"):
            work = case.ours if name == "ours" else case.peer
            once = perform(work, scratch)
            seconds, processor_seconds = once.seconds, once.processor_seconds
            runs = [once]
            if case.is_marginal:
                runs.append(perform(work.scaled(scale), scratch))
                seconds = runs[-1].seconds - once.seconds
                processor_seconds = runs[-1].processor_seconds - once.processor_seconds
            times[name].append(seconds)
            used[name].append(processor_seconds)
            if name == "ours":
                jvm = max(jvm, *(run.jvm_bytes for run in runs))
                python = max(python, *(run.python_bytes for run in runs))
    more = scale - 1 if case.is_marginal else 1
    return Outcome(
        case,
        [ours / peer for ours, peer in zip(times["ours"], times["peer"], strict=True)],
        _ms_per_mb(case.ours, more, used["ours"]),
        _ms_per_mb(case.peer, more, used["peer"]),
        _megabytes(case.ours, more) / statistics.median(times["ours"]),
        _megabytes(case.peer, more) / statistics.median(times["peer"]),
        jvm / 1e6,
        python / 1e6,
    )


def _ms_per_mb(work: Work, more: float, seconds: Sequence[float]) -> float:
    return 1000 * statistics.median(seconds) / _megabytes(work, more)


def _megabytes(work: Work, more: float) -> float:
    """The size in units of 10^6 bytes; recipes count in MiB."""
    return (work.recipe.megabytes << 20) * more / 1e6


def main(argv: Sequence[str] | None = None) -> int:
    names = list(cases_of(1))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", default="sparse-whole", help=f"all, or a list of {', '.join(names)}"
    )
    parser.add_argument("--megabytes", type=int, default=256, help="size of the logs in MiB")
    parser.add_argument("--scale", type=float, default=16, help="size factor of marginal cases")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="keep corpora in this folder for later runs")
    given = parser.parse_args(argv)
    wanted = names if given.cases == "all" else given.cases.split(",")
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        parser.error(f"--cases: got {', '.join(unknown)}, allowed: all, {', '.join(names)}")
    print(f"{os.cpu_count()} cores, {given.megabytes} MiB, {given.pairs} pairs\n\n{HEADING}")
    with _scratch(given.scratch) as scratch:
        for name in wanted:
            case = cases_of(given.megabytes)[name]
            print(compare(case, given.pairs, given.scale, scratch).row(), flush=True)
    print(f"\nload {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
