"""``make profile``: profiles runs of flink-triage.

    python -m benchmarks.profile --megabytes 256 --trace-share 0.01

The program first samples the local runner with one worker and prints the seconds by stage and by
function. Time in libraries is attributed to the calling function of flink-triage. It then measures
a run on Spark into a new warehouse and prints the seconds between the failpoints that the driver
reaches, which are named points at which tests can kill the process. Session startup is timed
separately.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyinstrument import Profiler
from pyinstrument.frame import Frame
from pyspark.sql import SparkSession

import flink_triage
from benchmarks.corpus import Recipe, write_recipe
from flink_triage.local import Options, run_local
from flink_triage.spark import failpoints
from flink_triage.spark.pipeline import run
from flink_triage.spark.runtime.session import get_session

SAMPLE_SECONDS = 0.005
ROWS_SHOWN = 25
OURS = Path(flink_triage.__file__).parent


def profile_in_process(corpus: Path) -> None:
    profiler = Profiler(interval=SAMPLE_SECONDS)
    with profiler:
        run_local([str(corpus)], Options(workers=1))
    assert profiler.last_session is not None
    root = profiler.last_session.root_frame(trim_stem=False)
    assert root is not None
    stages: dict[str, float] = defaultdict(float)
    functions: dict[str, float] = defaultdict(float)
    _add(root, ("python", "start and imports"), stages, functions)
    total = sum(stages.values())
    print(f"in process, one core: {total:.2f} s\n\n| stage | s | % |\n|---|---|---|")
    _print(stages, total)
    print("\n| function | s | % |\n|---|---|---|")
    _print(functions, total)


def _print(seconds_of: Mapping[str, float], total: float) -> None:
    longest = sorted(seconds_of.items(), key=lambda item: -item[1])
    for name, seconds in longest[:ROWS_SHOWN]:
        print(f"| {name} | {seconds:.2f} | {100 * seconds / total:.1f} |")


def _add(
    frame: Frame, owner: tuple[str, str], stages: dict[str, float], functions: dict[str, float]
) -> None:
    """Add the time of a frame and of its callees, each to the innermost flink-triage function."""
    path = Path(frame.file_path or "")
    if path.is_relative_to(OURS):
        inside = path.relative_to(OURS)
        stage = inside.parts[0].removesuffix(".py")
        owner = (stage, f"{inside}:{frame.function}")
    own = frame.time - sum(child.time for child in frame.children)
    stages[owner[0]] += own
    functions[owner[1]] += own
    for child in frame.children:
        _add(child, owner, stages, functions)


def profile_on_spark(corpus: Path, megabytes: int, master: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trail: list[tuple[float, str]] = []
        failpoints.hook = lambda name, _subject: trail.append((time.time(), name))
        began = time.time()
        spark: SparkSession = get_session(master=master, size_bytes=megabytes << 20)
        started = time.time()
        run(spark, [str(corpus)], f"{folder}/warehouse")
        ended = time.time()
        spark.stop()
    print(f"\non Spark: session {started - began:.1f} s, run {ended - started:.1f} s\n")
    print("| until | s |\n|---|---|")
    last = started
    for at, point in trail:
        print(f"| {point} | {at - last:.2f} |")
        last = at
    print(f"| end | {ended - last:.2f} |")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256, help="size of the logs in MiB")
    parser.add_argument("--trace-share", type=float, default=0.01, help="share of traces, 0 to 1")
    parser.add_argument(
        "--scratch", type=Path, help="keep the corpus in this folder for later runs"
    )
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--only", choices=("process", "spark"))
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe("folders", given.megabytes, given.trace_share)
        corpus = write_recipe(recipe, (given.scratch or Path(folder)) / "corpora")
        if given.only != "spark":
            profile_in_process(corpus)
        if given.only != "process":
            profile_on_spark(corpus, given.megabytes, given.master)
    print(f"\nload {', '.join(f'{load:.1f}' for load in os.getloadavg())}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
