"""Labeled logs, and documents that describe failures, yield the expected diagnoses."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from benchmarks.evaluate import Answer, evaluate, find_labelled
from flink_triage.local import Options, run_local

LOGS = Path(__file__).resolve().parents[1] / "logs"
SHARED = Path(
    os.environ.get("FLINK_TRIAGE_SHARED", Path(__file__).resolve().parents[2].parent / "shared")
)
DEPLOYMENTS = sorted(str(p.parent.relative_to(LOGS)) for p in LOGS.rglob("label.yaml"))
# The label expects these signatures, but the log does not contain their messages.
NOT_IN_THE_LOG = {
    "rocksdb/local-dir-vanished/manifest-1.16.0": {"checkpoint/tolerable-threshold-exceeded"}
}


@cache
def answers() -> dict[str, Answer]:
    return {str(a.labelled.path.relative_to(LOGS)): a for a in evaluate(LOGS)}


def test_there_are_labelled_logs():
    assert len(DEPLOYMENTS) >= 29


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_root_cause_ranks_first_and_consequences_follow(deployment):
    answer = answers()[deployment]
    if not answer.labelled.root:
        assert answer.verdicts == {"healthy"}
        assert answer.anywhere == set()
        return
    assert answer.labelled.root & set(answer.ranked[:1]), answer.ranked
    unheard = NOT_IN_THE_LOG.get(deployment, set())
    for consequence in answer.labelled.consequences:
        assert consequence & (answer.anywhere | unheard), sorted(consequence)


SEEDS = {
    "000": {"rocksdb/manifest-checksum-mismatch"},
    "001": {"rocksdb/local-dir-vanished"},
    "002": {"rocksdb/hardlink-unsupported"},
    "003": {
        "kafka/offset-commit-failed",
        "checkpoint/tolerable-threshold-exceeded",
        "rocksdb/bad-table-magic",
        "checkpoint/metadata-already-exists",
    },
    "004": {"hdfs/checkpoint-write-failed"},
}
# Options that the documents recommend. The remediation mentions them, even if it advises otherwise.
SEED_ADVICE = {
    "rocksdb/manifest-checksum-mismatch": {"execution.checkpointing.num-retained"},
    "rocksdb/local-dir-vanished": {"state.backend.rocksdb.localdir"},
    "rocksdb/hardlink-unsupported": {"state.backend.rocksdb.localdir"},
    "kafka/offset-commit-failed": {"reconnect.backoff.ms"},
    "checkpoint/tolerable-threshold-exceeded": {
        "execution.checkpointing.tolerable-failed-checkpoints",
        "execution.checkpointing.min-pause",
    },
    "rocksdb/bad-table-magic": {"execution.checkpointing.num-retained", "local-recovery"},
    "checkpoint/metadata-already-exists": {"execution.checkpointing.dir", "num-retained"},
    "hdfs/checkpoint-write-failed": {"execution.checkpointing.tolerable-failed-checkpoints"},
}


@pytest.mark.parametrize("seed", sorted(SEEDS))
def test_each_document_yields_its_failures_with_their_remediation(seed):
    files = sorted((SHARED / "seeds").glob(f"{seed}_*")) if SHARED.is_dir() else []
    if not files:
        pytest.skip("the documents that the project started from are not on this machine")
    result = run_local([str(files[0])], Options(group_by="file"))
    diagnoses = {d.signature: d for i in result.incidents for d in i.diagnoses}
    assert SEEDS[seed] <= set(diagnoses)
    for signature in SEEDS[seed]:
        remediation = diagnoses[signature].remediation
        advised = " ".join(
            [change.key for change in remediation.config]
            + [f"{t.advice} {t.assessment}" for t in remediation.commonly_tried]
            + list(remediation.steps)
        )
        for advice in SEED_ADVICE[signature]:
            assert advice in advised, (signature, advice)


def test_labels_name_signatures_that_exist():
    import yaml

    from flink_triage.signatures import builtin_pack_directory, load_pack

    labels = yaml.safe_load((LOGS.parent / "labels.yaml").read_text())
    known = load_pack((builtin_pack_directory(),)).signatures
    for one in find_labelled(LOGS, labels):
        for accepted in (one.root or frozenset(), *one.consequences):
            assert accepted <= set(known) or accepted & set(known), (one.path.name, accepted)
