"""Measures hourly runs over a growing history, with the same amount of new data each hour.

    python -m benchmarks.incremental [--runs 30] [--maintain-every 168]

Recorded logs are given new dates for each hour. Four deployments continue in the same files: one is
healthy, one has a failure that recurs each hour, and two alternate between healthy and failing.
Each hour adds one new deployment. Two runs into a different warehouse warm up the JVM and are not
printed. The wall time and the CPU time of all other runs are printed. The CPU time of the last runs
is compared with that of the first; run 0, which creates the tables, is excluded. If the tables are
maintained every N runs and there are at least N + 20 runs, the ten runs after the first
maintenance are compared with runs 2 to 11, and the last ten runs with those N runs earlier. At the
end, the published incidents and unknown failures are compared with those of a single local run over
all logs.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

from pyspark.sql import SparkSession

from benchmarks.watch import processor_seconds
from flink_triage.local import Options, run_local
from flink_triage.model import Incident, Result
from flink_triage.settings import Settings
from flink_triage.spark.maintain import maintain
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result
from flink_triage.spark.runtime.session import get_session

LOGS = Path(__file__).resolve().parents[1] / "tests" / "logs"
HEALTHY = "healthy/orders-1.16.0"
NPE = "operator/user-code-exception/npe-1.16.0"
READ_ONLY = "checkpoint/tolerable-threshold-exceeded/read-only-1.16.0"
EXPIRED = "checkpoint/tolerable-threshold-exceeded/expired-1.16.0"
# The logs of each deployment, one per hour, repeated.
CONTINUING = {
    "orders": (HEALTHY,),
    "totals": (NPE,),
    "pricing": (HEALTHY, READ_ONLY),
    "bills": (EXPIRED, HEALTHY),
}
NEW_EACH_HOUR = HEALTHY
BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
# An even number, because some deployments alternate between two logs.
COMPARED_RUNS = 6
PERIOD_RUNS = 10
WARM_UP_RUNS = 2
OPTIONS = Options(settings=Settings(settle_seconds=-1e9))

_TIME = re.compile(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?=,\d{3} )")
# Lines with the configuration or version, which are removed from all hours but the first: the
# recordings come from several clusters, but represent hours of one cluster.
_STARTED = re.compile(r"(?m)^.*(?:GlobalConfiguration|\(Version: ).*\n")
_EXECUTION = re.compile(r"\b[0-9a-f]{3}(?=[0-9a-f]{29}_[0-9a-f]{32}_\d)")
_GRAPH = re.compile(r"(?<=execution graph )[0-9a-f]{3}(?=[0-9a-f]{29}\b)")


def dated(text: str, hour: int) -> str:
    """A recorded log moved to a different hour, with new dates and execution ids."""
    first = _TIME.search(text)
    assert first is not None, "a log without times"
    start = datetime.fromisoformat(first[0]).replace(tzinfo=UTC, minute=0, second=0)
    move = BEGAN + timedelta(hours=hour) - start

    def later(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(match[0]).replace(tzinfo=UTC) + move
        return f"{at:%Y-%m-%d %H:%M:%S}"

    text = _TIME.sub(later, text)
    name = f"{hour:03x}"
    return _GRAPH.sub(name, _EXECUTION.sub(name, text))


def write_hour(fleet: Path, hour: int) -> int:
    """Write the fleet's logs of one hour; return the number of bytes."""
    written = 0
    logged = {name: parts[hour % len(parts)] for name, parts in CONTINUING.items()}
    for name, recorded in {**logged, f"new-{hour:03d}": NEW_EACH_HOUR}.items():
        folder = fleet / name
        folder.mkdir(parents=True, exist_ok=True)
        for source in sorted((LOGS / recorded / "logs").glob("*.log")):
            text = dated(source.read_text(), hour)
            log = folder / source.name
            if log.exists():
                text = _STARTED.sub("", text)
            with log.open("a") as file:
                file.write(text)
            written += len(text.encode())
    return written


@dataclass(frozen=True, slots=True)
class Hour:
    """The cost of one run: new bytes, wall time and CPU time in seconds."""

    new_bytes: int
    seconds: float
    processor_seconds: float


def hourly_runs(
    spark: SparkSession, folder: Path, count: int, maintain_every: int = 0
) -> Iterator[Hour]:
    """Measure ``count`` runs over a fleet that grows in ``folder``."""
    warehouse = str(folder / "warehouse")
    for hour in range(count):
        written = write_hour(folder / "fleet", hour)
        started, used = time.perf_counter(), processor_seconds()
        run(spark, [str(folder / "fleet")], warehouse, OPTIONS)
        yield Hour(written, time.perf_counter() - started, processor_seconds() - used)
        if maintain_every and hour and hour % maintain_every == 0:
            maintain(spark, warehouse)


def compared_runs(count: int, maintain_every: int) -> list[tuple[range, range]]:
    """Pairs of later and earlier runs that are compared; run 0 creates the tables."""
    if maintain_every and count >= maintain_every + 2 * PERIOD_RUNS:
        begin = maintain_every + 1
        first = range(begin, begin + PERIOD_RUNS), range(2, 2 + PERIOD_RUNS)
        last = range(count - PERIOD_RUNS + 1, count + 1)
        return [first, (last, range(last[0] - maintain_every, last[-1] + 1 - maintain_every))]
    few = min(COMPARED_RUNS, count)
    return [(range(count + 1 - few, count + 1), range(1, 1 + few))]


def comparable(result: Result) -> tuple[list[Incident], object]:
    """The values to compare. Statuses are excluded, because a single run has none."""
    return [replace(incident, status=None) for incident in result.incidents], result.unknown


def equals_single_run(spark: SparkSession, folder: Path) -> bool:
    found = read_result(spark, str(folder / "warehouse"))
    return comparable(found) == comparable(run_local([str(folder / "fleet")], OPTIONS))


def main(arguments: list[str], say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description="Measures hourly runs over a growing history.")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--maintain-every", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    spark = get_session(master="local[2]")
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as measured:
        for _ in hourly_runs(spark, Path(warm), WARM_UP_RUNS):
            pass
        hours: list[Hour] = []
        say("run   new MB   seconds   CPU seconds")
        runs = hourly_runs(spark, Path(measured), options.runs + 1, options.maintain_every)
        for number, hour in enumerate(runs):
            note = "" if number else "   creates the tables: not counted"
            say(
                f"{number:3d} {hour.new_bytes / 1e6:8.2f} {hour.seconds:9.2f} "
                f"{hour.processor_seconds:13.2f}{note}"
            )
            hours.append(hour)
        for later, earlier in compared_runs(options.runs, options.maintain_every):
            last = mean(hours[number].processor_seconds for number in later)
            first = mean(hours[number].processor_seconds for number in earlier)
            say(
                f"CPU seconds of runs {later[0]} to {later[-1]}: {last:.2f}, "
                f"of runs {earlier[0]} to {earlier[-1]}: {first:.2f}, ratio {last / first:.2f}"
            )
        is_same = equals_single_run(spark, Path(measured))
        say(f"incidents equal those of a single run: {'yes' if is_same else 'NO'}")
    spark.stop()
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
