"""Tests damaged and hostile user files: each problem has a path, a line, and a field.

``python -m tests.fuzz.user_files RUNS SEED`` reads RUNS damaged files of each kind, and prints each
file that fails a check, with its seed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from flink_triage.errors import SignaturePackError, UsageError
from flink_triage.logs.layouts.custom_layouts import read_layouts
from flink_triage.settings import KIB
from flink_triage.signatures import builtin_pack_directory, load_pack
from tests.fuzz.core import told, watched

SECONDS_PER_FILE = 10
PROBLEM = re.compile(r"[^\n\x1b]+:\d+: [^\n]+?: [^\n]+")
LAYOUTS = b"""\
- name: acme
  regex: '(?P<level>[EWI])(?P<at>\\S+ \\S+)~(?P<thread>[^~]+)~(?P<message>.*)'
  example: E2026-11-21 06:48:23~task-1~it failed
- name: other
  regex: '(?P<at>\\d{4}-\\d\\d-\\d\\d) (?P<level>[A-Z]+)'
  example: '2026-11-21 WARN'
"""
# Text that is inserted at random positions.
PIECES = (
    b"\x1b]0;title\x07", b"\0", b"\xff\xfe", b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ",
    b"[" * 100, b"{" * 100, b"- " * 100, b"? ", b"---\n", b"2026-99-99", b"0x" + b"f" * 9_000,
    b"(?P<at>", b"(?:x|xx)+$", b"(" * 2_000, b"\xe2\x80\xae", b"\t", b"|\n", b"%YAML 9.9\n",
    b"x" * 300 * KIB, b"'", b'"', b": ", b"\n", b"null", b"~",
)  # fmt: skip


def damaged(text: bytes, drawn: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(drawn.choice((1, 1, 3, 10))):
        at = drawn.randrange(len(data) + 1)
        match drawn.choice(("insert", "insert", "delete", "swap")):
            case "insert":
                data[at:at] = drawn.choice(PIECES)
            case "delete":
                del data[at : at + drawn.choice((1, 5, 80))]
            case _:
                data[at : at + 1] = bytes((drawn.randrange(256),))
    return bytes(data)


def _write(path: Path, data: bytes, drawn: random.Random) -> None:
    """Write a file; in some cases, create a pipe, a link, or a folder instead."""
    kind = drawn.random()
    if kind < 0.05:
        os.mkfifo(path)
    elif kind < 0.1:
        path.symlink_to("/dev/zero")
    elif kind < 0.15:
        path.mkdir()
    else:
        path.write_bytes(data)


def check_layouts(seed: int, folder: Path) -> None:
    drawn = random.Random(seed)
    _write(folder / "layouts.yaml", damaged(LAYOUTS, drawn), drawn)
    try:
        layouts = read_layouts([folder])
    except UsageError as error:
        for line in str(error).split("\n"):
            assert PROBLEM.fullmatch(line), repr(line)
    else:
        assert all(isinstance(layout, str) for layout in layouts)


def check_signature(seed: int, folder: Path) -> None:
    drawn = random.Random(seed)
    shipped = sorted(builtin_pack_directory().rglob("*.yaml"))
    text = drawn.choice(shipped).read_bytes()
    (folder / "own").mkdir()
    _write(folder / "own" / "one.yaml", damaged(text, drawn), drawn)
    try:
        load_pack((folder,))
    except SignaturePackError as error:
        for line in error.problems:
            assert PROBLEM.fullmatch(line), repr(line)


CHECKS = {"layouts": check_layouts, "signature": check_signature}


def broken(seeds: Sequence[int], folder: Path) -> dict[str, str]:
    """The files that fail a check, each with the traceback."""
    found: dict[str, str] = {}
    for seed in seeds:
        for name, check in CHECKS.items():
            place = folder / f"{name}-{seed}"
            place.mkdir()
            try:
                with watched(SECONDS_PER_FILE):
                    check(seed, place)
            except Exception:
                found[f"{name} of seed {seed}"] = traceback.format_exc()
            shutil.rmtree(place)
    return found


def main(runs: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = broken(range(seed, seed + runs), Path(folder))
    return told(found, f"{runs} files of each kind from seed {seed}")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
