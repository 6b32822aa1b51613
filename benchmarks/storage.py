"""Compares reading and scanning logs in an object store and on a local disk.

Both places must contain the same files. They are read alternately. The first turn is a warm-up,
which is neither printed nor counted:

    python -m benchmarks.storage --local /logs --uri s3a://bucket/logs --turns 3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from flink_triage.local import Options, scan_inputs
from flink_triage.logs.inputs.files import list_inputs, open_binary
from flink_triage.settings import MIB

BLOCK_BYTES = 2 * MIB


def read_whole(root: str) -> int:
    """The number of bytes below ``root``, which are read in blocks of ``BLOCK_BYTES``."""
    total = 0
    for file in list_inputs([root]).files:
        with open_binary(file.path) as stream:
            while block := stream.read(BLOCK_BYTES):
                total += len(block)
    return total


def scan_whole(root: str) -> int:
    """Scan all files below ``root`` in one process; return the number of bytes."""
    scanned = scan_inputs([root], Options(workers=1), lambda done, total: None)
    return sum(r.scan.event_bytes + r.scan.counted_bytes for r in scanned.results)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local", required=True, metavar="DIR")
    parser.add_argument("--uri", required=True, metavar="URI", help="the same files")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args(argv)
    for name, work in (("read", read_whole), ("scan", scan_whole)):
        best: dict[str, float] = {}
        for turn in range(arguments.turns + 1):
            for root in (arguments.local, arguments.uri):
                before = time.perf_counter()
                size = work(root)
                rate = size / MIB / (time.perf_counter() - before)
                if turn:
                    best[root] = max(best.get(root, 0.0), rate)
                    print(f"{name} {root}: {size / MIB:.1f} MiB, {rate:.0f} MiB/s", flush=True)
        share = best[arguments.uri] / best[arguments.local]
        print(f"{name}: {share:.2f} of the local rate, best turn against best turn")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
