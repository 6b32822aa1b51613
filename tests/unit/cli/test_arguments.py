"""Tests invalid option values, unknown commands, and time arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flink_triage.cli.arguments import options_of
from flink_triage.cli.main import build_parser, main

LOGS = str(Path(__file__).resolve().parents[2] / "logs" / "healthy" / "orders-2.1.1" / "logs")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["diagnos", LOGS],
            "neither a command nor a file; did you mean diagnose?",
            id="misspelled command",
        ),
        pytest.param(
            ["/no/such/path"], "'/no/such/path' does not exist", id="path without a command"
        ),
        pytest.param(
            ["ftp://host/logs"],
            "'ftp://host/logs' has an unknown scheme",
            id="URI without a command",
        ),
        pytest.param(["xyzzy"], "commands: diagnose, run, ", id="word that resembles no command"),
        pytest.param(
            ["diagnose", LOGS, "--formt", "json"],
            "'--formt' is not an argument of flink-triage diagnose; did you mean --format?",
            id="misspelled option",
        ),
        pytest.param(
            ["diagnose", LOGS, "--formt=json"],
            "did you mean --format?",
            id="misspelled option with a value",
        ),
        pytest.param(
            ["signatures", "list", "--signaturs", "x"],
            "of flink-triage signatures list; did you mean --signatures?",
            id="misspelled option of a subcommand",
        ),
        pytest.param(
            ["report", "--xyzzy"],
            "'--xyzzy' is not an argument of flink-triage report; see",
            id="option that resembles no other",
        ),
        pytest.param(
            ["diagnose", LOGS, "--flink-version", "banana"],
            "--flink-version: 'banana'",
            id="invalid version",
        ),
        pytest.param(
            ["diagnose", LOGS, "--workers", "-1"],
            "--workers: got -1",
            id="negative number of workers",
        ),
        pytest.param(["diagnose", LOGS, "--workers", "0"], "--workers: got 0", id="zero workers"),
        pytest.param(
            ["diagnose", LOGS, "--since", "2 fortnights"],
            "--since: '2 fortnights'",
            id="unknown unit",
        ),
        pytest.param(
            ["diagnose", LOGS, "--since", "999999999w"],
            "--since: '999999999w'",
            id="duration out of range",
        ),
        pytest.param(
            ["diagnose", LOGS, "--since", "25:61"], "--since: '25:61'", id="invalid time of day"
        ),
        pytest.param(
            ["diagnose", LOGS, "--since", "1h", "--until", "2h"],
            ") is not before --until 2h (",
            id="start after end",
        ),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("flink-triage: ")
    assert error.count("\n") == 1


def since(text: str, zone: str = "UTC") -> datetime:
    arguments = build_parser().parse_args(["diagnose", "x", "--since", text, "--timezone", zone])
    at = options_of(arguments).since
    assert at is not None
    return at


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("5min", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("3 d", timedelta(days=3)),
        ("1w", timedelta(weeks=1)),
    ],
)
def test_relative_times_are_parsed(text: str, ago: timedelta) -> None:
    assert abs(datetime.now(UTC) - ago - since(text)) < timedelta(seconds=5)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("shift", [timedelta(minutes=-3), timedelta(minutes=3)])
def test_a_time_of_day_is_the_last_one(zone: str, shift: timedelta) -> None:
    at = since("05:52", zone)
    now = datetime.now(at.tzinfo)
    assert (at.hour, at.minute, at.second) == (5, 52, 0)
    assert timedelta(0) <= now - at < timedelta(days=1, hours=1)
    wanted = (now + shift).replace(microsecond=0)
    assert since(f"{wanted:%H:%M:%S}", zone) == wanted - timedelta(days=shift > timedelta(0))


def test_an_iso_time_keeps_its_zone() -> None:
    assert since("2026-11-21T05:52:20Z") == datetime(2026, 11, 21, 5, 52, 20, tzinfo=UTC)
    tokyo = since("2026-11-21", "Asia/Tokyo")
    assert tokyo.utcoffset() == timedelta(hours=9)
