"""Builds an archive of the package, as it is on the Python path of a Spark worker."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import flink_triage

PACKAGE = Path(flink_triage.__file__).parent


def archive_of_package(folder: Path, more: Mapping[str, Path] = MappingProxyType({})) -> Path:
    """Writes the modules, the tables, and ``more`` files (by their path in the archive)."""
    archive = folder / "flink_triage.zip"
    modules = (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.tsv"))
    names = {str(path.relative_to(PACKAGE.parent)): path for path in modules}
    with zipfile.ZipFile(archive, "w") as packed:
        for name, path in {**names, **more}.items():
            packed.write(path, name)
    return archive


def printed_with(archive: Path, program: str, *arguments: str) -> str:
    """Runs a Python program that imports the package from the archive."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
