"""Secrets in all forms of ``tests/secrets`` are masked, in all carriers of ``tests/secrets``."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_triage.local import Options, scan_inputs
from flink_triage.logs.text.redact import redact
from tests.secrets.carriers import CARRIERS, log_of
from tests.secrets.shapes import CLASSES, HARMLESS, SECRETS, word


def test_there_are_shapes_and_carriers_enough() -> None:
    assert len(SECRETS) >= 300
    assert {name for name, shapes in CLASSES.items() if len(shapes) < 3} == set()
    assert len(CARRIERS) >= 8


@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_masked(name: str) -> None:
    secret = SECRETS[name]
    redacted, count = redact(secret.text)
    assert [canary for canary in secret.canaries if canary in redacted] == []
    assert count
    assert redact(redacted) == (redacted, {})
    assert redacted.count("\n") == secret.text.count("\n")


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_lookalikes_are_not_masked(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_carrier_leaks_a_secret(carrier: str, tmp_path: Path) -> None:
    texts = [secret.text for secret in SECRETS.values()]
    tmp_path.joinpath("taskmanager.log").write_text(log_of(CARRIERS[carrier], texts))
    scanned = scan_inputs([str(tmp_path)], Options(), lambda done, total: None)
    kept = repr((scanned.profiles, scanned.results, scanned.quarantined))
    events = [o for result in scanned.results for o in result.observations]
    # Without this check, the test would pass if no event of the carrier were kept.
    assert len(events) >= len(texts)
    assert [
        name
        for name, secret in SECRETS.items()
        if any(canary in kept for canary in secret.canaries)
    ] == []


THREAD = f"Source: https://u:{word('thread')}@db.example/orders"
WITH_THREAD = {
    "block reader": f"2026-11-21 05:52:20,772 [{THREAD}] ERROR com.acme.Client - cannot open\n",
    "line reader": '{"@timestamp": "2026-11-21T05:52:20.772Z", "log.level": "ERROR", "message": '
    f'"cannot open", "log.logger": "com.acme.Client", "process.thread.name": "{THREAD}"}}\n',
}


@pytest.mark.parametrize("line", WITH_THREAD.values(), ids=WITH_THREAD.keys())
def test_names_of_threads_are_masked(line: str, tmp_path: Path) -> None:
    tmp_path.joinpath("taskmanager.log").write_text(line * 3)
    kept = repr(scan_inputs([str(tmp_path)], Options(), lambda done, total: None).results)
    assert "[REDACTED:url-password]@db.example" in kept
    assert word("thread") not in kept
