"""Tests output to files, links, FIFOs, devices, standard output, and full disks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flink_triage.cli import main

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests" / "logs" / "healthy" / "orders-2.1.1" / "logs"
PAGE = "<!doctype html"


def command(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flink_triage", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "pipeline")},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        **more,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("flag", ["--report", "--output"])
def test_a_fifo_is_written_to(flag: str, tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", list[str]()
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()), daemon=True)
    reader.start()
    assert main(["diagnose", str(LOGS), "--quiet", "--format", "html", flag, str(fifo)]) == 0
    reader.join(timeout=30)
    assert got
    assert got[0].startswith(PAGE)
    assert fifo.is_fifo()


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "report.html", tmp_path / "latest.html"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with target.open() as old:
        assert main(["diagnose", str(LOGS), "--report", str(link)]) == 0
        assert old.read() == "old", "who reads the old report reads it to its end"
    assert link.is_symlink()
    assert target.read_text().startswith(PAGE)
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_an_open_descriptor_is_written_to(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flink_triage",
            "diagnose",
            str(LOGS),
            "--report",
            f"/dev/fd/{theirs}",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "pipeline")},
        pass_fds=[theirs],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    with open(ours, encoding="utf-8") as page:
        assert page.read().startswith(PAGE)
    assert process.wait(timeout=30) == 0


def test_output_name_of_maximum_length(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    assert main(["diagnose", str(LOGS), "--report", str(path)]) == 0
    assert path.read_text().startswith(PAGE)


def test_a_dash_is_standard_output(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["diagnose", str(LOGS), "--format", "json", "--output", str(tmp_path / "o.json")]
    assert main([*words, "--report", "-", "-q"]) == 0
    assert capsys.readouterr().out.startswith(PAGE)
    assert main(["diagnose", str(LOGS), "--report", "-"]) == 2
    assert "only one report can be written to standard output" in capsys.readouterr().err


def test_a_failed_write_leaves_the_old_report_and_no_part(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    ended = subprocess.run(
        [
            *("bash", "-c", 'ulimit -f 2; exec "$@"', "-", sys.executable, "-m", "flink_triage"),
            *("diagnose", str(LOGS), "-q", "--report", str(tmp_path / "report.html")),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "pipeline"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert ended.stderr.count("\n") == 1
    assert "File too large" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", str(LOGS), "--format", "json"),
        ("signatures", "list"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_exit_code_4(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ended = command(*words, stdout=full)
    assert (ended.returncode, ended.stderr.count("\n")) == (4, 1), ended.stderr
    assert "No space left on device" in ended.stderr


def test_a_full_device_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Through a symbolic link, so that a faulty writer can replace only the link.
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    assert main(["diagnose", str(LOGS), "-q", "--output", str(full)]) == 4
    assert f"cannot write {full}: No space left on device" in capsys.readouterr().err
    assert full.is_symlink()


def test_closed_standard_output_is_not_an_error() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w") as closed:
        ended = command("signatures", "list", stdout=closed)
    assert "Traceback" not in ended.stderr
    assert "Error" not in ended.stderr
    assert ended.returncode == 0


def test_broken_pipe_elsewhere_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken pipe is ignored only on standard output."""

    def fails(arguments: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("flink_triage.cli.commands.diagnose", fails)
    assert main(["diagnose", "x"]) == 70
    assert "BrokenPipeError" in capsys.readouterr().err
