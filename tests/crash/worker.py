"""A process that runs the pipeline each time it is told to: ``[inputs, warehouse]`` a line."""

from __future__ import annotations

import json
import sys

from flink_triage.errors import OutputHeldError
from flink_triage.spark.pipeline import run
from flink_triage.spark.session import get_session


def main() -> None:
    spark = get_session(master="local[2]")
    print("ready", flush=True)
    for line in sys.stdin:
        inputs, warehouse = json.loads(line)
        try:
            run(spark, [inputs], warehouse)
            print("done", flush=True)
        except OutputHeldError:
            print("held", flush=True)


if __name__ == "__main__":
    main()
