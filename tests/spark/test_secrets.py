"""Tests that the files of a Spark run (tables, reports, local folders) contain no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import flink_triage
from tests.secrets.carriers import CARRIERS, log_of
from tests.secrets.shapes import SECRETS

# This text is not secret and occurs in every event: the search must find it.
KNOWN = "com.acme.orders.Client"
# Compressed blocks could not be searched, and cleaned-up blocks would no longer exist.
KEPT = " ".join(
    f"--conf {key}=false"
    for key in (
        "spark.shuffle.compress",
        "spark.shuffle.spill.compress",
        "spark.broadcast.compress",
        "spark.rdd.compress",
        "spark.cleaner.referenceTracking",
    )
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The occurrences of the canaries and of ``KNOWN`` in all files that the run left."""
    folder = tmp_path_factory.mktemp("secrets")
    texts = [secret.text for secret in SECRETS.values()]
    for number, carrier in enumerate(CARRIERS.values()):
        log = folder / "logs" / f"deployment-{number}" / "taskmanager.log"
        log.parent.mkdir(parents=True)
        log.write_text(log_of(carrier, texts))
    words = [KNOWN, *(word for secret in SECRETS.values() for word in secret.canaries)]
    local = folder / "local"
    local.mkdir()
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("secrets_run.py")),
            *(str(folder / name) for name in ("logs", "warehouse", "out")),
        ],
        input="\n".join(words),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(flink_triage.__file__).parents[1]),
            "SPARK_LOCAL_DIRS": str(local),
            "PYSPARK_SUBMIT_ARGS": f"{KEPT} pyspark-shell",
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.split("\n")[-2])
    return found


def test_no_canary_is_in_any_byte_that_was_written(searched: dict[str, Any]) -> None:
    leaks = Counter((Path(p).parent.name, word) for p, word in searched["found"] if word != KNOWN)
    assert leaks == Counter()


def test_the_search_sees_what_is_there(searched: dict[str, Any]) -> None:
    places = {Path(path).parts[-2] for path, word in searched["found"] if word == KNOWN}
    assert {"events", "diagnoses", "out"} & places >= {"events", "out"}
    assert searched["files"]["local"] > 0
    assert searched["redactions"] >= len(SECRETS) * len(CARRIERS)
