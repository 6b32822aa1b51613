"""A process that executes each order ``[inputs, warehouse, guard, work]`` from standard input.

Its argument is the number of seconds without a write after which a file is settled.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from flink_triage.errors import OutputHeldError
from flink_triage.local import Options
from flink_triage.settings import Settings
from flink_triage.spark import pipeline
from flink_triage.spark.maintain import Upkeep, maintain
from flink_triage.spark.pipeline import diagnose_again, run
from flink_triage.spark.runtime.session import get_session
from flink_triage.spark.tables.published_runs import PublishedRun
from flink_triage.spark.tables.warehouse import Warehouse
from tests.crash.backends import BACKEND, BUCKET, place_of


class Unlocked(Warehouse):
    """A warehouse without a lock, so that only the publication order separates runs."""

    @property
    def local_path(self) -> Path | None:
        return None


NEXT = pipeline._next
GUARDS = {"locked": Warehouse, "unlocked": Unlocked, "unguarded": Unlocked}


def number_of_its_own(runs: Sequence[PublishedRun]) -> int:
    """For the control: a unique number, so that concurrent runs never commit the same number."""
    return time.time_ns()


def main(settle_seconds: str) -> None:
    options = Options(settings=Settings(settle_seconds=float(settle_seconds)))
    spark = get_session(master="local[2]", warehouse=BUCKET if BACKEND == "s3" else None)
    print("ready", flush=True)
    for line in sys.stdin:
        inputs, warehouse, guard, work = json.loads(line)
        warehouse = GUARDS[guard](**place_of(spark, Path(warehouse)))
        pipeline._next = number_of_its_own if guard == "unguarded" else NEXT
        try:
            if work == "run":
                run(spark, [inputs], warehouse, options)
            elif work == "maintain":
                maintain(spark, warehouse, Upkeep(keep_days=1))
            else:
                diagnose_again(spark, warehouse, is_rematch=True)
            print("done", flush=True)
        except OutputHeldError:
            print("held", flush=True)
        except Exception:
            traceback.print_exc()
            print("failed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
