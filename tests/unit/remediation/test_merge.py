from __future__ import annotations

import pytest

from flink_triage.model import Action, ConfigChange, Scope
from flink_triage.remediation import merge_changes

TIMEOUT = "execution.checkpointing.timeout"


def _change(
    value: str, action: Action = "raise", key: str = TIMEOUT, scope: Scope = "cluster"
) -> ConfigChange:
    return ConfigChange(key, value, action, "r", scope)


MERGED = [
    ("of two raises the larger stands", [_change("20 min")], [_change("1 h")], ("1 h", "r")),
    ("sizes are compared, not texts", [_change("90 s")], [_change("2 min")], ("2 min", "r")),
    ("of two lowers the smaller stands", [_change("20 min", "lower")], [_change("300 s", "lower")],
     ("300 s", "r")),
    ("equal values in two spellings are one wish", [_change("10 min", "set")],
     [_change("600 s", "set")], ("10 min", "r")),
    ("of two values the better diagnosis stands", [_change("10 min", "set")],
     [_change("20 min", "set")],
     ("10 min", "r (diagnosis 2 would set it to 20 min: not applied)")),
    ("raise against lower goes by rank", [_change("1 h")], [_change("1 min", "lower")],
     ("1 h", "r (diagnosis 2 would lower it to 1 min: not applied)")),
    ("remove against set goes by rank", [_change("", "remove")], [_change("1 h", "set")],
     ("", "r (diagnosis 2 would set it to 1 h: not applied)")),
    ("what is set already gives way to more", [_change("1 h", "already-set")], [_change("2 h")],
     ("2 h", "r")),
    ("a number beats a value to choose", [_change("<longer>")], [_change("1 h")], ("1 h", "r")),
    ("a value to choose does not beat a number", [_change("1 h")], [_change("<longer>")],
     ("1 h", "r")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "expected"), [case[1:] for case in MERGED], ids=[c[0] for c in MERGED]
)
def test_changes_of_two_diagnoses_become_one(
    first: list[ConfigChange], second: list[ConfigChange], expected: tuple[str, str]
) -> None:
    merged = merge_changes([(2, second), (1, first)], "1.16.0")
    assert [(change.value, change.reason) for change in merged] == [expected]


def test_old_and_new_names_are_one_option() -> None:
    old = _change("2", key="state.checkpoints.num-retained")
    new = _change("3", key="execution.checkpointing.num-retained")
    assert merge_changes([(1, [old]), (2, [new])], "2.1.0") == (new,)


def test_scopes_are_kept_apart_and_the_order_is_that_of_the_ranks() -> None:
    cluster, connector = _change("1 h"), _change("1 h", scope="connector")
    other = _change("3", key="state.checkpoints.num-retained")
    assert merge_changes([(3, [connector]), (1, [other]), (2, [cluster])], None) == (
        other,
        cluster,
        connector,
    )


def test_nothing_to_merge_is_nothing() -> None:
    assert merge_changes([]) == ()
    assert merge_changes([(1, [])]) == ()
