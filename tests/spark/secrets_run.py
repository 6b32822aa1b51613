"""A run in a separate process that searches its tables, reports and temporary files for words.

The script is called as ``secrets_run.py INPUT WAREHOUSE OUTPUT``, with one word per line on
standard input. It prints a JSON object with the matches (``[path, word]``), and the numbers of
files and of masked secrets. It searches before Spark stops, while temporary files still exist.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flink_triage.local import Options
from flink_triage.report import FORMATS, render
from flink_triage.settings import Settings
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result
from flink_triage.spark.runtime.session import get_session


def main(inputs: str, warehouse: str, output: str) -> None:
    words = sys.stdin.read().split("\n")
    spark = get_session(master="local[2]")
    options = Options(settings=Settings(settle_seconds=-1e9), group_by="file")
    run(spark, [inputs], warehouse, options)
    result = read_result(spark, warehouse)
    folder = Path(output)
    folder.mkdir()
    for name in FORMATS:
        (folder / f"report.{name}").write_text(render(result, name), encoding="utf-8")
    places = [Path(warehouse), folder, Path(os.environ["SPARK_LOCAL_DIRS"])]
    found = [hit for place in places for hit in _found(place, words)]
    sizes = {place.name: sum(1 for p in place.rglob("*") if p.is_file()) for place in places}
    print(json.dumps({"found": found, "files": sizes, "redactions": result.coverage.redactions}))
    spark.stop()


def _found(place: Path, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Words in the bytes of each file, and in the cells of each table file."""
    for path in sorted(place.rglob("*")):
        if not path.is_file():
            continue
        texts = [path.read_bytes()]
        if path.suffix == ".parquet":
            texts.append(_cells(path))
        for text in texts:
            yield from ((str(path), word) for word in words if word.encode() in text)


def _cells(path: Path) -> bytes:
    table = pq.read_table(path)
    return b"\n".join(_plain(column) for column in table.itercolumns())


def _plain(column: pa.ChunkedArray) -> bytes:
    return "\n".join(str(value) for value in column.to_pylist()).encode("utf-8", "surrogatepass")


if __name__ == "__main__":
    main(*sys.argv[1:])
