"""The HTML report in a real browser: what it shows, that its script runs, and nothing else does."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flink_triage.cli import main

LOGS = Path(__file__).resolve().parents[1] / "logs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def dump(page: Path, profile: Path, *flags: str) -> tuple[str, list[str]]:
    """The DOM after the script ran, and what the page wrote to the console."""
    assert CHROMIUM is not None
    run = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout, re.findall(r"CONSOLE.*", run.stderr)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    page = tmp_path_factory.mktemp("report") / "report.html"
    folders = (
        "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
        "healthy/orders-2.1.1",
        "rocksdb/bad-table-magic/flip-2.1.1",
    )
    paths = [str(LOGS / folder / "logs") for folder in folders]
    assert main(["diagnose", *paths, "--report", str(page), "--quiet", "--format", "json"]) == 0
    return page


def test_first_screen_holds_the_answer_and_the_script_runs(report, tmp_path):
    dom, console = dump(report, tmp_path)
    text = re.sub(r"<[^>]+>", " ", dom)
    assert console == []
    for words in (
        "A disk or storage volume is full",
        "2026-11-21 05:52:20 UTC",
        "Customer Totals",
        "execution.checkpointing.tolerable-failed-checkpoints: 3",
    ):
        assert words in text
    assert re.search(r"<button[^>]*>\s*Copy", dom)


def test_hostile_log_words_stay_words(tmp_path):
    hostile = "<img src=x onerror=document.title='owned'></script><script>alert(1)</script>"
    log = tmp_path / "logs" / "taskmanager.log"
    log.parent.mkdir()
    log.write_text(
        f"2026-11-21 05:00:00,000 ERROR org.apache.flink.X [] - {hostile}\n"
        f"java.io.IOException: No space left on device {hostile}\n"
        "\tat org.apache.flink.runtime.state.Y.write(Y.java:1)\n"
    )
    page = tmp_path / "report.html"
    assert main(["diagnose", str(log), "--report", str(page), "--quiet", "--format", "json"]) == 0
    dom, console = dump(page, tmp_path / "profile")
    assert console == []
    assert "<img" not in dom
    assert "<title>owned" not in dom
    assert "onerror=document.title" in dom.replace("&lt;", "<").replace("&gt;", ">")
