"""Measures how many examples match without the alternatives that match only that example.

``python -m benchmarks.left_out [SUBSYSTEM...]`` prints the shares, and each example of the given
subsystems that does not match without these alternatives.
"""

from __future__ import annotations

import sys

from flink_triage.signatures import builtin_pack_directory, load_pack
from flink_triage.signatures.leave_one_out import leave_out, render_left_out


def main(arguments: list[str]) -> None:
    rows = leave_out(load_pack([builtin_pack_directory()]))
    print(render_left_out(rows))
    for row in rows:
        if row.signature.partition("/")[0] in arguments and not row.is_named_without_it:
            print(f"{row.signature} examples.match[{row.sample}] of {row.library}")


if __name__ == "__main__":
    main(sys.argv[1:])
