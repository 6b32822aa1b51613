"""Releases are reproducible, and their dependencies are pinned and recorded."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
CONSTRAINTS = PROJECT / "constraints.txt"
EXTRAS = ("spark", "connect", "compression")
EPOCH = "1750000000"


def build(folder: Path, kind: str) -> Path:
    """Builds one archive of the checkout in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder)],
        cwd=PROJECT,
        env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.iterdir()
    return found


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_are_equal_byte_for_byte(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    archives = [build(tmp_path / name, kind) for name in ("one", "two")]
    assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}) == 1
    assert archives[0].name == archives[1].name
    if kind == "wheel":
        with zipfile.ZipFile(archives[0]) as wheel:
            names = wheel.namelist()
        assert "flink_triage/_patterns/signature.schema.json" in names
        assert not [name for name in names if name.endswith(".pyc")]
    else:
        with tarfile.open(archives[0]) as source:
            names = source.getnames()
        assert [name for name in names if name.endswith("/constraints.txt")]


def pinned() -> dict[str, str]:
    """Returns the pinned versions for the running Python version."""
    from packaging.requirements import Requirement

    lines = CONSTRAINTS.read_text(encoding="utf-8").split("\n")
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def required(distribution: str, extras: tuple[str, ...] = ()) -> set[str]:
    """Returns the distributions that are required here, including those of the given extras."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    for text in metadata.requires(distribution) or []:
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            found.add(re.sub(r"[-_.]+", "-", requirement.name).lower())
    return found


def test_each_package_that_a_user_gets_is_pinned() -> None:
    pytest.importorskip("packaging")
    waiting, seen = required("flink-triage", EXTRAS), set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        try:
            waiting |= required(name) - seen
        except metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")
    assert seen - pinned().keys() == set()


def test_pins_are_what_the_project_asks_for() -> None:
    pytest.importorskip("packaging")
    from packaging.requirements import Requirement

    pins = pinned()
    for text in metadata.requires("flink-triage") or []:
        requirement = Requirement(text)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in pins:
            assert requirement.specifier.contains(pins[name]), f"{text}: pinned to {pins[name]}"


def test_the_bill_of_materials_names_what_is_installed(tmp_path: Path) -> None:
    program = shutil.which("cyclonedx-py", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("cyclonedx-bom is not installed here")
    import json

    path = tmp_path / "bill.json"
    words = ["environment", sys.executable, "--pyproject", str(PROJECT / "pyproject.toml")]
    # `make release` runs the validation, which takes half a minute.
    words += ["--output-reproducible", "--no-validate", "--output-file", str(path)]
    subprocess.run([program, *words], check=True, capture_output=True, cwd=PROJECT)
    bill = json.loads(path.read_text(encoding="utf-8"))
    assert not {"serialNumber", "timestamp"} & (bill.keys() | bill["metadata"].keys())
    assert bill["metadata"]["component"]["name"] == "flink-triage"
    assert {"numpy", "PyYAML"} <= {component["name"] for component in bill["components"]}
