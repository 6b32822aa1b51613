"""A run against a plain copy of the same text into Delta, as whole processes, in turn.

    python -m benchmarks.copy_to_delta --corpus corpus/ --pairs 3

Each process starts its own session on the same master; the copy is ``spark.read.text`` into Delta
with Spark's defaults.  Printed are all seconds, both medians with their rate, and the ratio
(above 1: the run is faster).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SIDES = ("run", "copy")


def one_side(side: str, corpus: Path, output: Path, master: str) -> None:
    """One side, in this process."""
    from flink_triage.local import Options
    from flink_triage.spark.pipeline import run
    from flink_triage.spark.session import get_session

    spark = get_session(master=master, small=False)
    if side == "run":
        run(spark, [str(corpus)], str(output), Options())
    else:
        spark.read.text(str(corpus)).write.format("delta").save(str(output))
    spark.stop()


def time_side(side: str, corpus: Path, master: str) -> float:
    """Seconds of one side as a process of its own, from start to end."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "benchmarks.copy_to_delta", "--side", side]
        command += ["--corpus", str(corpus), "--output", f"{scratch}/out", "--master", master]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        shutil.rmtree(f"{scratch}/out", ignore_errors=True)
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        one_side(given.side, given.corpus, given.output, given.master)
        return 0
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for pair in range(given.pairs):
        # The order alternates: neither side always finds the pages in memory.
        for side in SIDES if pair % 2 == 0 else SIDES[::-1]:
            seconds[side].append(round(time_side(side, given.corpus, given.master), 2))
    megabytes = sum(path.stat().st_size for path in given.corpus.rglob("*.log")) / 1e6
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    figures = {
        "corpus_mb": round(megabytes, 1),
        "seconds": seconds,
        "median_seconds": medians,
        "mb_per_second": {side: round(megabytes / value, 1) for side, value in medians.items()},
        "ratio": round(medians["copy"] / medians["run"], 2),
    }
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
