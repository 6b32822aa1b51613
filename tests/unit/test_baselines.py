"""The results and limits of the two baseline methods."""

from __future__ import annotations

import gzip
from pathlib import Path

from benchmarks.baselines import grep_and_count, most_frequent_exception, text_of
from flink_triage.signatures import SignaturePack

FULL = "Caused by: java.io.IOException: No space left on device"
EXPIRED = (
    "org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint expired before completing."
)


def test_grep_ranks_by_frequency(pack: SignaturePack) -> None:
    ranking = grep_and_count("\n".join([FULL, *[EXPIRED] * 9]), pack)
    assert ranking.index("checkpoint/expired") < ranking.index("disk/full")


def test_grep_requires_the_class_of_a_signature(pack: SignaturePack) -> None:
    assert "disk/full" in grep_and_count(FULL, pack)
    assert "checkpoint/expired" not in grep_and_count("Checkpoint expired", pack)


def test_the_most_frequent_exception_is_named_by_class_and_text(pack: SignaturePack) -> None:
    numbered = [f"java.io.IOException: No space left on device {n}" for n in range(5)]
    assert most_frequent_exception("\n".join([EXPIRED, *numbered]), pack)[0] == "disk/full"
    assert most_frequent_exception("WARN  No space left on device", pack) == []


def test_all_files_of_a_deployment_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("one")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b"two"))
    assert set(text_of(tmp_path).split("\n")) == {"one", "two"}
