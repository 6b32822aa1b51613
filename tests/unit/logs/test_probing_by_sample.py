"""Detection from a sample of the first lines gives the same result as from all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flink_triage.logs.detect import profile
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.model import FileProfile
from flink_triage.settings import DEFAULT_SETTINGS

LOGS = Path(__file__).parents[2] / "logs"
LINE = "2026-11-21 05:52:{:02},001 INFO  org.apache.flink.runtime.taskmanager.Task [] - Said {}.\n"


def probed(path: Path) -> FileProfile:
    (file,) = list_inputs([str(path)]).files
    found = profile.probe(file, DEFAULT_SETTINGS)
    return replace(found, layout_confidence=round(found.layout_confidence, 9))


def by_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> FileProfile:
    with monkeypatch.context() as context:
        context.setattr(profile, "_SAMPLE_LINES", 10**9)
        return probed(path)


def test_sample_detects_the_same_profile_as_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [
        path
        for path in sorted(LOGS.rglob("*.log"))
        if path.read_bytes().count(b"\n") > 2 * profile._SAMPLE_LINES
    ]
    assert len(long) > 20
    for path in long:
        assert probed(path) == by_all(path, monkeypatch), path


@pytest.mark.parametrize(
    "later",
    [
        pytest.param("05:52:31.000 [main] INFO  o.a.f.Foo - Other.\n", id="another layout"),
        pytest.param('{"@timestamp":"2026-11-21T05:52:31Z","message":"m"}\n', id="JSON"),
        pytest.param("prose without any header or indentation\n", id="prose"),
    ],
)
def test_sample_detects_formats_later_in_the_head(
    later: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "taskmanager.log"
    lines = [LINE.format(number % 60, number) for number in range(450)]
    path.write_text("".join(lines + [later] * 600))
    found = probed(path)
    assert found == by_all(path, monkeypatch)
    assert not found.is_splittable
