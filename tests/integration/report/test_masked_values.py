"""Reports and alerts for logs with secrets contain no part of a secret in any format."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.alerts.changes import changes_between
from flink_triage.alerts.messages import KINDS, messages_for
from flink_triage.api import diagnose
from flink_triage.cli.main import main
from flink_triage.model import Coverage, Result
from flink_triage.report import FORMATS, render
from flink_triage.report.facts.wording import coverage_line
from tests.secrets.carriers import CARRIERS, log_of
from tests.secrets.shapes import SECRETS, word

# Names with a secret: the input folder, a deployment, a log file, and an ignored file.
NAMES = tuple(word(f"name {number}") for number in range(4))
CARRIED = ("plain", "JSON lines, ECS", "message of a stack trace", "effective configuration")
# Masking inserts this mark, so its presence shows that the text contained secrets.
MARK = "REDACTED"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes one deployment per secret, so that each secret is part of a first fault."""
    root = tmp_path_factory.mktemp("secrets") / f"db_password={NAMES[0]}"
    for number, secret in enumerate(SECRETS.values()):
        folder = root / f"deployment-{number}"
        folder.mkdir(parents=True)
        for name in CARRIED:
            log = log_of(CARRIERS[name], [secret.text])
            folder.joinpath(f"{name.replace(' ', '-')}.log").write_text(log)
    folder = root / f"orders,token={NAMES[1]}"
    folder.mkdir()
    folder.joinpath(f"jobmanager,api_key={NAMES[2]}.log").write_text(log_of(CARRIERS["plain"], "x"))
    folder.joinpath(f"secret={NAMES[3]}.yaml").write_text("a: 1\n")
    return root


@pytest.fixture(scope="module")
def result(logs: Path) -> Result:
    return diagnose(logs, workers=1)


def _leaks(text: str) -> list[str]:
    found = [name for name, s in SECRETS.items() if any(word in text for word in s.canaries)]
    return found + [f"path {number}" for number, name in enumerate(NAMES) if name in text]


@pytest.mark.parametrize("form", FORMATS)
def test_no_report_holds_a_secret(form: str, result: Result) -> None:
    text = render(result, form, verbose=True)  # type: ignore[arg-type]
    assert MARK in text
    assert _leaks(text) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_alert_holds_a_secret(kind: str, result: Result) -> None:
    changes = changes_between(None, result)
    messages = messages_for(kind, changes, "run", datetime.now(UTC))  # type: ignore[arg-type]
    bodies = [message.body.decode() for message in messages]
    assert bodies
    assert [_leaks(body) for body in bodies] == [[]] * len(bodies)


def test_the_command_writes_no_secret(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["diagnose", str(logs), "--verbose"])
    printed = capsys.readouterr()
    assert MARK in printed.out
    assert _leaks(printed.out + printed.err) == []


def test_values_are_counted_by_kind(result: Result) -> None:
    coverage = result.coverage
    assert coverage.redactions == sum(coverage.redactions_by_kind.values())
    assert coverage.redactions >= len(SECRETS) * len(CARRIED)
    assert {
        "password",
        "token",
        "key",
        "jwt",
        "pem",
        "webhook",
    } <= coverage.redactions_by_kind.keys()


def test_report_counts_masked_values_by_kind() -> None:
    coverage = Coverage(redactions=12, redactions_by_kind={"key": 1, "password": 9, "token": 2})
    assert "12 values masked (9 password, 2 token, 1 key)" in coverage_line(coverage)


def test_equal_failures_with_other_secrets_have_one_fingerprint(tmp_path: Path) -> None:
    line = "2026-11-21 05:{:02}:00,000 ERROR com.acme.Client [] - failed\n"
    trace = "java.io.IOException: refused {}\n\tat com.acme.Client.open(Client.java:12)\n"
    log = tmp_path / "taskmanager.log"
    for shape in ("password={}", "https://u:{}@db/x", "redis-cli -a {} ping", "password is {}"):
        texts = (line.format(n) + trace.format(shape.format(word(f"{n}"))) for n in range(20))
        log.write_text("".join(texts))
        assert diagnose(log).coverage.fingerprints == 1
