"""Measures the wall time, CPU time and peak process memory of a command."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Measured:
    """``jvm_bytes`` and ``python_bytes`` are the peaks of the largest process of each kind.

    ``processor_seconds`` includes all processes whose parent waited for them, but not the workers
    that a JVM kills when it exits.
    """

    seconds: float
    processor_seconds: float
    jvm_bytes: int
    python_bytes: int


def measure(command: Sequence[str]) -> Measured:
    """Run the command until it exits.

    On failure, print its output and raise ``CalledProcessError``.
    """
    began, used = time.monotonic(), _processor_seconds()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    peaks = {"java": 0, "python": 0}
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
    watcher.start()
    _, said = process.communicate()
    seconds = time.monotonic() - began
    ended.set()
    watcher.join()
    if process.returncode:
        print(said[-4000:], file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, command)
    used = _processor_seconds() - used
    return Measured(seconds, used, peaks["java"], peaks["python"])


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _watch(root: int, peaks: dict[str, int], ended: threading.Event) -> None:
    while not ended.wait(POLL_SECONDS):
        for pid in _descendants(root):
            status = _status(pid)
            name = status.get("Name", "")
            kind = "java" if name == "java" else "python" if "python" in name else None
            if kind is not None:
                peaks[kind] = max(peaks[kind], 1024 * int(status.get("VmHWM", "0").split()[0]))


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            parent = _status(int(entry)).get("PPid")
            if parent is not None:
                children.setdefault(int(parent), []).append(int(entry))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, ())
    return found


def _status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has ended
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n") if ":" in line)
    return {key: value.strip() for key, value in pairs}
