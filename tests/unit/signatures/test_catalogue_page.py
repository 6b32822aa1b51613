"""The catalog contains all fields of a signature and no unescaped markup."""

from __future__ import annotations

from dataclasses import replace

from signature_builders import SMALL_PACK, signature

from flink_triage.signatures import ConfigSpec, Examples, RemediationSpec, build_pack, load_pack
from flink_triage.signatures.catalogue import (
    measure_quality,
    render_catalogue,
    render_quality,
)


def test_each_signature_has_a_row_and_a_section() -> None:
    page = render_catalogue(load_pack([SMALL_PACK]))
    row = (
        "| [rocksdb/bad-table-magic](#rocksdbbad-table-magic) "
        "| RocksDB table file has a bad magic number | critical | trigger |"
    )
    assert row in page.split("\n")
    section = page.partition("### rocksdb/bad-table-magic")[2]
    for said in (
        "Recognized by `Bad table magic number` in `RocksDBException`.",
        "1. Start the job from the checkpoint before the damaged one.",
        "| `state.checkpoints.num-retained` | `3` |",
        "2 times the current value, at least `4`, at most `16`",
        "Commonly tried: Delete the local directory. It only helps when",
        "Limits: Another store",
        "Versions: affected: 1.10; fixed: no",
        "[FLINK-36421](https://issues.apache.org/jira/browse/FLINK-36421)",
        "Explains: [checkpoint/threshold-exceeded](#checkpointthreshold-exceeded)",
    ):
        assert said in section


def test_the_same_pack_gives_the_same_page() -> None:
    pack = load_pack([SMALL_PACK])
    assert render_catalogue(pack) == render_catalogue(load_pack([SMALL_PACK]))


def test_texts_are_escaped() -> None:
    odd = signature(
        title="A <script> | in a title",
        remediation=RemediationSpec("x", config=(ConfigSpec("k", "<a|b>", reason="c|d <b>"),)),
    )
    page = render_catalogue(build_pack([odd]))
    assert "<script>" not in page
    assert "| A &lt;script> \\| in a title |" in page
    assert "| `k` | `<a\\|b>` | c\\|d &lt;b> |" in page


def test_quality_counts_examples_and_errors() -> None:
    good = signature("a/good", examples=Examples(("lost it",), ("kept it",)))
    bad = replace(good, id="a/bad", examples=Examples(("lost it", "kept it"), ("lost it too",)))
    rows = measure_quality(build_pack([good, bad]), healthy=["all well", "lost it and healthy"])
    counts = {
        row.signature: (
            row.examples,
            row.missed_examples,
            row.near_misses,
            row.taken_near_misses,
            row.healthy_hits,
            row.fires_on,
        )
        for row in rows
    }
    assert counts == {
        "a/bad": (2, 1, 1, 1, 1, ("a/good[0]",)),
        "a/good": (1, 0, 1, 0, 1, ("a/bad[0]",)),
    }
    assert all(row.microseconds > 0 for row in rows)
    assert "| a/bad | 1/2 | 0/1 | 0 | 1 | 1 |" in render_quality(rows)
