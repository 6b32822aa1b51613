"""Reads inputs in a separate process; returns its peak memory, CPU time, and parts of the result.

``python -m tests.fuzz.limits PATH...`` is that process.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flink_triage.local import Options, run_local
from flink_triage.settings import MIB

# The limits for a process. Python, its libraries, and the signatures take 60 MB.
MAX_MEGABYTES = 700
MAX_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """Parts of the result for some inputs; ``problems`` are the checks that failed."""

    megabytes: int = 0
    seconds: float = 0.0
    quarantined: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def peak(self) -> str:
        return f"{self.megabytes:>5} MB {self.seconds:>6.1f} s"


def read_apart(paths: Sequence[str]) -> Found:
    command = [sys.executable, "-m", "tests.fuzz.limits", *paths]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        return Found(problems=(f"ended with {done.returncode}: {last[-300:]}",))
    told = json.loads(done.stdout)
    problems = []
    if told["megabytes"] > MAX_MEGABYTES:
        problems.append(f"more than {MAX_MEGABYTES} MB")
    return Found(
        told["megabytes"],
        told["seconds"],
        tuple(told["quarantined"]),
        tuple(told["signatures"]),
        tuple(problems),
    )


def peak_kibibytes() -> int:
    """The peak memory of this process. ``ru_maxrss`` may be that of its parent process."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def _read_here(paths: Sequence[str]) -> None:
    # Above these limits, the process ends with a signal or a MemoryError.
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (4 * MAX_MEGABYTES * MIB, 4 * MAX_MEGABYTES * MIB))
    result = run_local(paths, Options(workers=1))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "megabytes": peak_kibibytes() // 1000,
        "seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "quarantined": sorted({q.reason for q in result.coverage.quarantined}),
        "signatures": sorted({d.signature for i in result.incidents for d in i.diagnoses}),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    _read_here(sys.argv[1:])
