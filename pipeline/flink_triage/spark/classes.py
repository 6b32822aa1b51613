"""The classes that a JVM loads, kept for the next one: in goes the Java, out comes its option.

Loading and verifying classes is a third of a short run.  The JVM can write those that it has loaded
into an archive when it ends, 200 MB, and the next one maps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from flink_triage.spark.jars import cache_directory
from flink_triage.spark.java import Java

# An archive of another Java or other jars is left aside, which is not worth a word.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# Options that say themselves what is to be done with archives.
_DECIDING = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")


def archive_option(
    java: Java,
    jars: Sequence[Path],
    given: str = "",
    *,
    may_write: bool,
    directory: Path | None = None,
) -> str:
    """What a JVM is started with to take the archive, or to write it; empty for neither.

    Of those that ``may_write`` the second on a machine writes it: where nothing lasts longer than a
    run, as in a container, none is written.  It is tried once, and never where the options that
    were ``given`` decide.  Who only reads tables should not: that loads half of what a run does.
    """
    if any(word in given for word in _DECIDING):
        return ""
    archive = (directory or cache_directory() / "classes") / f"{_identity(java, jars)}.jsa"
    seen, made = archive.with_suffix(".seen"), archive.with_suffix(".made")
    try:
        if made.exists():
            return _taken(archive, made)
        if not may_write:
            return ""
        archive.parent.mkdir(parents=True, exist_ok=True)
        if not seen.exists():
            seen.touch()
            return ""
        # Of those that start at once one succeeds.
        seen.rename(made)
    except OSError:
        # It only spares time.
        return ""
    return f'"-XX:ArchiveClassesAtExit={archive}" {QUIET}'


def _taken(archive: Path, made: Path) -> str:
    """The JVM checks what an archive fits, not whether it is whole: a cut one would crash it.

    Its head is written last, and once that stands the size must not change.
    """
    size = archive.stat().st_size
    known = made.read_text(encoding="ascii")
    if not known:
        with archive.open("rb") as file:
            if not any(file.read(4)):
                return ""
        made.write_text(str(size), encoding="ascii")
    elif known != str(size):
        return ""
    return f'"-XX:SharedArchiveFile={archive}" {QUIET}'


def _identity(java: Java, jars: Sequence[Path]) -> str:
    """What an archive has to fit."""
    home = java.path.resolve().parent.parent
    release = home / "release"
    told = release.read_bytes() if release.is_file() else b""
    names = "\0".join([str(home), metadata.version("pyspark"), *map(str, jars)])
    return hashlib.sha256(names.encode("utf-8", "surrogateescape") + told).hexdigest()[:16]
