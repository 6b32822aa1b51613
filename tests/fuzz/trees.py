"""Tests folders with links, pipes, and unusual names: each file is read once or reported.

``python -m tests.fuzz.trees RUNS SEED`` lists RUNS random trees, and prints each tree that fails a
check, with its seed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tarfile
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flink_triage.logs.inputs.files import list_inputs, open_binary
from tests.fuzz.core import told, watched

SECONDS_PER_TREE = 20
# Parts of misleading names: bytes that are not UTF-8, their escaped form, the separator between an
# archive and a member, control characters, and names from other operating systems.
PARTS = (
    b"a", b"b", b".log", b"!", b"\xff", b"\\xff", b"\\x5c", b"\\x21", b"\\", b"\n", b"\x1b[31m",
    b" ", b"\xc3\xbc", b"C:", b"logs", b"_", b".", b"\xe2\x80\xae", b".gz", b".tar", b".yaml",
)  # fmt: skip


def _is_no_log(path: bytes) -> bool:
    """Whether the file is not read, because of its name."""
    return os.path.splitext(path)[1].lower() == b".yaml"


class Tree:
    """A random tree: the contents of its logs, and the paths to report (``refused``)."""

    def __init__(self, root: bytes, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.root = root
        self.contents: Counter[bytes] = Counter()
        self.folders = [root]
        self.paths: list[bytes] = []
        self.refused: set[bytes] = set()
        os.makedirs(root)
        for _ in range(self.drawn.choice((3, 30, 100))):
            self._add(self.drawn.choice(self.folders))
        if self.drawn.random() < 0.2:
            self._add_chain(self.drawn.choice((50, 400)))

    def _name(self) -> bytes:
        name = b"".join(self.drawn.choices(PARTS, k=self.drawn.choice((1, 2, 4))))
        return b"x" + name if name in (b".", b"..") else name

    def _add(self, folder: bytes) -> None:
        path = os.path.join(folder, self._name())
        if os.path.lexists(path) or len(path) > 3_000:
            return
        kind = self.drawn.choice(("folder", "file", "file", "link", "pipe", "archive"))
        if kind == "folder":
            os.mkdir(path)
            self.folders.append(path)
        elif kind == "file":
            self._write(path)
        elif kind == "link":
            outside = self.drawn.choice((b"/etc/hostname", b"/", b"nowhere", path, b"..", b"."))
            os.symlink(self.drawn.choice([*self.folders, *self.paths, outside]), path)
        elif kind == "pipe":
            os.mkfifo(path)
            self.refused.add(path)
        else:
            self._write_archive(path)
        self.paths.append(path)

    def _new_content(self) -> bytes:
        return b"content %d\n" % (sum(self.contents.values()))

    def _write(self, path: bytes) -> None:
        content = self._new_content()
        with open(path, "wb") as file:
            file.write(content)
        if _is_no_log(path):
            self.refused.add(path)
        else:
            self.contents[content] += 1

    def _write_archive(self, path: bytes) -> None:
        if _is_no_log(path):
            return
        with tarfile.open(os.fsdecode(path), "w") as archive:
            for number in range(2):
                content = self._new_content()
                member = Path(tempfile.gettempdir(), f"member-{os.getpid()}")
                member.write_bytes(content)
                name = os.fsdecode(self._name().replace(b"/", b""))
                # A backslash followed by two dots would refer to a path outside of the archive.
                archive.add(member, f"m{number}{name.replace('.yaml', '').replace('..', '.')}")
                member.unlink()
                self.contents[content] += 1

    def _add_chain(self, depth: int) -> None:
        descriptor = os.open(self.root, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir("deep", dir_fd=descriptor)
            below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        content = self._new_content()
        file = os.open("a.log", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
        os.write(file, content)
        os.close(file)
        os.close(descriptor)
        self.contents[content] += 1


def check(seed: int, folder: Path) -> None:
    """Raise ``AssertionError`` if the tree of this seed fails a check."""
    root = os.fsencode(folder / "in")
    tree = Tree(root, seed)
    try:
        listing = list_inputs([os.fsdecode(root)])
        read: Counter[bytes] = Counter()
        for file in listing.files:
            file.path.encode()  # Arrow and JSON do not accept lone surrogates.
            with open_binary(file.path) as stream:
                read[stream.read()] += 1
        assert read == tree.contents, (read - tree.contents, tree.contents - read)
        assert len({file.path for file in listing.files}) == len(listing.files), (
            "a path is listed twice"
        )
        assert len(listing.quarantined) >= len(tree.refused), "a path is not reported"
        for item in listing.quarantined:
            item.path.encode()
    finally:
        subprocess.run(["rm", "-rf", root], check=True)


def broken(seeds: Sequence[int], folder: Path) -> dict[int, str]:
    """The seeds whose tree fails a check, each with the traceback."""
    found: dict[int, str] = {}
    for seed in seeds:
        try:
            with watched(SECONDS_PER_TREE):
                check(seed, folder)
        except Exception:
            found[seed] = traceback.format_exc()
    return found


def main(runs: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = broken(range(seed, seed + runs), Path(folder))
    return told(found, f"{runs} trees from seed {seed}")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
