"""A run against a plain copy of the same text into Delta, as whole processes, in turn.

    python -m benchmarks.bench --megabytes 1024 --trace-share 0.01 --pairs 3

Makes a corpus (or takes one that is there), then times `run` into a new warehouse and
``spark.read.text`` into a new Delta table, each from the start of Python to its end.  The run's
session is the one that the command takes for inputs of the size; the copy's is the one for large
inputs, whose Spark settings are Spark's own.  Printed are all seconds, the medians with their
rates, the median of the pairs' ratios (below 1: the run takes less time than the copy), and the
load of the machine at both ends.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import LOGS, write_corpus

SIDES = ("run", "copy")


def one_side(side: str, corpus: Path, output: Path, master: str) -> None:
    """One side, in this process."""
    from flink_triage.local import Options
    from flink_triage.settings import MIB
    from flink_triage.spark.pipeline import run
    from flink_triage.spark.session import get_session

    if side == "run":
        is_small = sum(path.stat().st_size for path in corpus.rglob("*.log")) < 512 * MIB
        spark = get_session(master=master, small=is_small)
        run(spark, [str(corpus)], str(output), Options(), progress=_say)
    else:
        spark = get_session(master=master, small=False)
        lines = spark.read.option("recursiveFileLookup", "true").text(str(corpus))
        lines.write.format("delta").save(str(output))
    _say("stopping")
    spark.stop()


def _say(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr)


def time_side(side: str, corpus: Path, master: str) -> float:
    """Seconds of one side as a process of its own, from start to end."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "benchmarks.bench", "--side", side]
        command += ["--corpus", str(corpus), "--output", f"{scratch}/out", "--master", master]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return round(time.monotonic() - began, 2)


def notable_share(corpus: Path) -> float:
    """The share of the first deployment's events that are kept and looked at one by one."""
    from flink_triage.logs.files import list_inputs
    from flink_triage.logs.plan import plan_ranges
    from flink_triage.logs.profile import probe
    from flink_triage.settings import DEFAULT_SETTINGS
    from flink_triage.signatures import builtin_pack_directory
    from flink_triage.stages import Analyzer

    listing = list_inputs([str(min(corpus.iterdir()))])
    profiles = [(probe(file, DEFAULT_SETTINGS), "first") for file in listing.files]
    analyzer = Analyzer((builtin_pack_directory(),))
    results = [analyzer.analyze(r) for r in plan_ranges(profiles, DEFAULT_SETTINGS)]
    events = sum(v.event_count for result in results for v in result.scan.volumes)
    return sum(len(result.observations) for result in results) / events


def measure(corpus: Path, pairs: int, master: str) -> dict[str, object]:
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for pair in range(pairs):
        # The order alternates: neither side always finds the pages in memory.
        for side in SIDES if pair % 2 == 0 else SIDES[::-1]:
            seconds[side].append(time_side(side, corpus, master))
    megabytes = sum(path.stat().st_size for path in corpus.rglob("*.log")) / 1e6
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    ratios = [run / copy for run, copy in zip(seconds["run"], seconds["copy"], strict=True)]
    return {
        "corpus_mb": round(megabytes, 1),
        "seconds": seconds,
        "median_seconds": medians,
        "mb_per_second": {side: round(megabytes / value, 1) for side, value in medians.items()},
        "median_ratio_run_to_copy": round(statistics.median(ratios), 2),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--trace-share", type=float, default=0.01, help="of the events, 0 to 1")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--source", type=Path, default=LOGS, help="logs to take events from")
    parser.add_argument("--corpus", type=Path, help="a corpus that is there")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        one_side(given.side, given.corpus, given.output, given.master)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        corpus = given.corpus or Path(scratch)
        if given.corpus is None:
            write_corpus(given.source, corpus, given.megabytes << 20, given.trace_share)
        told: dict[str, object] = {
            "deployments": len(list(corpus.iterdir())),
            "notable_share": round(notable_share(corpus), 3),
            "load_before": os.getloadavg(),
        }
        told |= measure(corpus, given.pairs, given.master) | {"load_after": os.getloadavg()}
    print(json.dumps(told, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
