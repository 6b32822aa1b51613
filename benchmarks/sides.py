"""The programs that ``bench`` compares; each runs as a separate process.

    python -m benchmarks.sides run --corpus corpus/ --output out/ --master 'local[2]'

``run`` and ``diagnose`` are flink-triage. The other programs do less:

- ``copy`` writes the lines into a Delta table.
- ``rlike`` writes the lines that match one of eight expressions into a Delta table.
- ``udf`` writes the lines that contain a literal of the signatures into a Delta table. It searches
  for the literals in a plain Python function.
- ``ripgrep`` counts the lines that contain a literal of the signatures.
- ``drain3`` mines templates.
- ``bare`` ignores the logs. It starts a session, writes one row, and reads it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from flink_triage.local import Options, pack_of

# Expressions for common failures of Flink.
EXPRESSIONS = (
    r"Exceeded checkpoint tolerable failure threshold",
    r"Checkpoint \d+ of job [0-9a-f]{32} expired before completing",
    r"java\.lang\.OutOfMemoryError: \w+",
    r"org\.rocksdb\.RocksDBException: .*(?:Corruption|magic number)",
    r"No space left on device",
    r"Heartbeat of TaskManager with id \S+ timed out",
    r"switched from \w+ to FAILED",
    r"Committing offsets to Kafka .*failed",
)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a program; without ``workers``, the number of processes is not limited."""

    corpus: Path
    output: Path
    master: str
    workers: int | None
    signatures: Path | None

    @property
    def options(self) -> Options:
        directories = (self.signatures,) if self.signatures else ()
        return Options(signature_directories=directories, workers=self.workers)


def run(given: Given) -> None:
    from flink_triage.spark.pipeline import run as run_pipeline
    from flink_triage.spark.startup import session_and_listing

    inputs, warehouse = [str(given.corpus)], str(given.output)
    spark, listing = session_and_listing(inputs, given.options, master=given.master)
    run_pipeline(spark, inputs, warehouse, given.options, progress=_say, listing=listing)
    spark.stop()


def diagnose(given: Given) -> None:
    from flink_triage.local import run_local
    from flink_triage.report import render_pieces

    result = run_local([str(given.corpus)], given.options)
    given.output.mkdir(parents=True, exist_ok=True)
    with (given.output / "result.json").open("w") as file:
        file.writelines(render_pieces(result, "json"))


def copy(given: Given) -> None:
    _write(given, lambda lines: lines)


def rlike(given: Given) -> None:
    def keep(lines: DataFrame) -> DataFrame:
        matched = F.lit(False)
        for expression in EXPRESSIONS:
            matched = matched | F.col("value").rlike(expression)
        return lines.where(matched)

    _write(given, keep)


def udf(given: Given) -> None:
    literals = sorted(pack_of(given.options).literals)

    def holds(value: str) -> bool:
        return any(literal in value for literal in literals)

    is_match = F.udf(holds, BooleanType())
    _write(given, lambda lines: lines.where(is_match("value")))


def ripgrep(given: Given) -> None:
    if shutil.which("rg") is None:
        raise SystemExit("ripgrep is missing; to install it on Debian, run apt install ripgrep")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(sorted(pack_of(given.options).literals)) + "\n")
        file.flush()
        command = ["rg", "--count", "--fixed-strings", "--text", "--file", file.name]
        if given.workers:
            command += ["--threads", str(given.workers)]
        command.append(str(given.corpus))
        # Exit code 1 means that no line contains a literal.
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode > 1:
            raise SystemExit("ripgrep failed")


def drain3(given: Given) -> None:
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig

    miner = TemplateMiner(config=TemplateMinerConfig())
    for path in sorted(given.corpus.rglob("*.log")):
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                miner.add_log_message(line)


def bare(given: Given) -> None:
    spark = _session(given, size_bytes=0)
    spark.range(1).write.format("delta").save(str(given.output))
    spark.read.format("delta").load(str(given.output)).collect()
    spark.stop()


SIDES: Mapping[str, Callable[[Given], None]] = {
    side.__name__: side for side in (run, diagnose, copy, rlike, udf, ripgrep, drain3, bare)
}


def _write(given: Given, kept: Callable[[DataFrame], DataFrame]) -> None:
    spark = _session(given, size_bytes=None)
    lines = spark.read.option("recursiveFileLookup", "true").text(str(given.corpus))
    kept(lines).write.format("delta").save(str(given.output))
    spark.stop()


def _session(given: Given, *, size_bytes: int | None) -> SparkSession:
    from flink_triage.spark.runtime.session import get_session

    return get_session(master=given.master, size_bytes=size_bytes)


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=sorted(SIDES))
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--signatures", type=Path)
    given = parser.parse_args()
    work = Given(given.corpus, given.output, given.master, given.workers, given.signatures)
    SIDES[given.side](work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
