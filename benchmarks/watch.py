"""Measures the wall time, CPU time and peak process memory of a command."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    """``jvm_bytes`` and ``python_bytes`` are the peak memory of the largest process of each kind.

    ``processor_seconds`` is the CPU time of the command and all its descendants. Each process is
    read every 0.2 s, so the time after its last reading is missing.
    """

    seconds: float
    processor_seconds: float
    jvm_bytes: int
    python_bytes: int


def measure(command: Sequence[str]) -> Measured:
    """Run the command until it exits.

    On failure, print its output and raise ``CalledProcessError``.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    seen = _Seen()
    ended = threading.Event()
    watcher = threading.Thread(target=seen.watch, args=(process.pid, ended))
    watcher.start()
    _, output = process.communicate()
    seconds = time.monotonic() - began
    ended.set()
    watcher.join()
    if process.returncode:
        print(output[-4000:], file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, command)
    peaks = seen.peak_bytes
    return Measured(seconds, sum(seen.ticks.values()) / _TICKS, peaks["java"], peaks["python"])


@dataclass(slots=True)
class _Seen:
    """Peak memory by kind of process, and the CPU time of each process in clock ticks."""

    peak_bytes: dict[str, int] = field(default_factory=lambda: {"java": 0, "python": 0})
    ticks: dict[tuple[int, str], int] = field(default_factory=dict)

    def watch(self, root: int, ended: threading.Event) -> None:
        while not ended.wait(POLL_SECONDS):
            for pid in _descendants(root):
                self._read(pid)

    def _read(self, pid: int) -> None:
        status = _status(pid)
        name = status.get("Name", "")
        kind = "java" if name == "java" else "python" if "python" in name else None
        if kind is not None:
            peak = 1024 * int(status.get("VmHWM", "0").split()[0])
            self.peak_bytes[kind] = max(self.peak_bytes[kind], peak)
        fields = _fields(pid)
        if fields:
            user, system, started = fields[11], fields[12], fields[19]
            self.ticks[pid, started] = int(user) + int(system)


def processor_seconds() -> float:
    """The CPU time so far of this process and all its descendants, including ended ones.

    The time of an ended process counts as soon as its parent has waited for it.
    """
    ticks = 0
    for pid in _descendants(os.getpid()):
        ticks += sum(map(int, _fields(pid)[11:15]))
    return ticks / _TICKS


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


def _fields(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name, which may contain spaces (see proc(5))."""
    return _text(pid, "stat").rpartition(") ")[2].split()


def _status(pid: int) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in _text(pid, "status").split("\n") if ":" in line)
    return {key: value.strip() for key, value in pairs}


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # the process has ended
        return ""
