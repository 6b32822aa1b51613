"""The status of incidents, and the alerts that a real HTTP server receives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from flink_triage.alerts.changes import Change, changes_between
from flink_triage.alerts.messages import KINDS, MAX_SLACK_SECTIONS, messages_for
from flink_triage.alerts.sending import MAX_TRIES, VARIABLES, address_of, send
from flink_triage.errors import UsageError
from flink_triage.model import Coverage, Diagnosis, Incident, Remediation, Result, Run

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIAGNOSIS = Diagnosis(
    1, "a/b", "A title", "major", "trigger", 0.9, 1.0, (), 1, NOW, NOW, (), (), {}, (), (),
    "cause", Remediation("Do it"),
)  # fmt: skip
INCIDENT = Incident(
    "id", "orders", "job-1", "totals", None, NOW, NOW, "diagnosed", "ongoing", 1, None, None,
    (DIAGNOSIS,), summary="It broke.",
)  # fmt: skip
CRITICAL = replace(DIAGNOSIS, severity="critical", signature="c/d")


def result(*incidents: Incident, run: str = "run") -> Result:
    return Result({}, Run(run, NOW, NOW, "set"), Coverage(), incidents, ())


def test_change_is_the_status_that_the_run_assigned() -> None:
    worsened = replace(INCIDENT, status="worse")
    assert changes_between(result(INCIDENT), result(worsened, run="next")) == (
        Change("worse", worsened),
    )


def test_finished_incident_or_missing_later_run_is_no_change() -> None:
    over = replace(INCIDENT, outcome="recovered")
    assert changes_between(result(over), result(over, run="next")) == ()
    opened = replace(INCIDENT, status="new")
    assert changes_between(result(opened), result(opened)) == ()


def test_missing_incident_is_resolved_if_its_deployment_was_diagnosed() -> None:
    healthy = replace(INCIDENT, verdict="healthy", diagnoses=(), outcome="unknown")
    assert changes_between(result(INCIDENT), result(healthy, run="next")) == (
        Change("resolved", INCIDENT),
    )
    assert changes_between(result(INCIDENT), result(run="next")) == ()


def test_the_first_run_has_only_new_incidents() -> None:
    assert [change.status for change in changes_between(None, result(INCIDENT))] == ["new"]


HOSTILE = replace(
    INCIDENT,
    deployment="<!channel> *a* `b` & <http://x|y>",
    summary="\x1b[31m\u202e\n" + "x" * 9000,
)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_stays_text_and_within_limits(kind: str) -> None:
    changes = [Change("new", HOSTILE)] * 2000
    (message,) = messages_for(kind, changes, "run", NOW)  # type: ignore[arg-type]
    body = json.loads(message.body)
    assert "\\u001b" not in message.body.decode()
    assert "\\u202e" not in message.body.decode()
    if kind == "slack":
        texts = [block["text"]["text"] for block in body["blocks"]]
        assert len(texts) == MAX_SLACK_SECTIONS + 1 <= 50
        assert max(map(len, texts)) <= 3000
        assert not {"<", ">", "`"} & set("".join(texts))
    assert len(message.body) < 1 << 20


@pytest.mark.parametrize("kind", KINDS)
def test_ongoing_incident_sends_no_alert(kind: str) -> None:
    assert messages_for(kind, [Change("ongoing", INCIDENT)], "run", NOW) == ()  # type: ignore[arg-type]


def test_a_resolved_alert_ends_under_the_labels_with_which_it_began() -> None:
    worse = replace(INCIDENT, incident_id="other", diagnoses=(CRITICAL,))
    first, last = (
        json.loads(messages_for("alertmanager", [change], "run", NOW)[0].body)[0]
        for change in (Change("new", INCIDENT), Change("resolved", worse))
    )
    assert first["labels"] == last["labels"]
    assert ("endsAt" in first, "endsAt" in last) == (False, True)


@contextmanager
def receiver(*answers: int, retry_after: str = "") -> Iterator[tuple[str, list[bytes]]]:
    """Runs a server that returns the given status codes, then 200, and records request bodies."""
    left, bodies = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            code = left.pop(0) if left else 200
            self.send_response(code)
            if code == 429:
                self.send_header("Retry-After", retry_after)
            if 300 <= code < 400:
                self.send_header("Location", "/elsewhere-secret")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook-secret", bodies
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answers", "tries", "problem"),
    [
        pytest.param((), 1, None, id="delivered on the first attempt"),
        pytest.param((503, 429), 3, None, id="delivered on the third attempt"),
        pytest.param(
            (404,), 1, "the receiver responded with 404", id="a wrong address is not retried"
        ),
        pytest.param(
            (500,) * 9,
            MAX_TRIES,
            "the receiver responded with 500; tried 4 times",
            id="the receiver always fails",
        ),
    ],
)
def test_sending(answers: tuple[int, ...], tries: int, problem: str | None) -> None:
    (message,) = messages_for("webhook", [Change("new", INCIDENT)], "run", NOW)
    with receiver(*answers) as (address, bodies):
        assert send(message, address, wait=lambda seconds: None) == problem
    assert bodies == [message.body] * tries


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_as_not_sent(code: int) -> None:
    (message,) = messages_for("webhook", [Change("new", INCIDENT)], "run", NOW)
    with receiver(code) as (address, bodies):
        problem = send(message, address, wait=lambda seconds: None)
    assert problem == f"the receiver responded with {code}, a redirect; set the final URL"
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        pytest.param("7", 7, 7, id="seconds"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", 1, 1, id="a date in the past"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 30, 30, id="no longer than 30 s"),
        pytest.param("9" * 400, 30, 30, id="too large for a float"),
        pytest.param("soon", 1, 1, id="neither a number nor a date"),
        pytest.param("\u00b2", 1, 1, id="a Unicode digit that is not a number"),
    ],
)
def test_retry_after_is_honoured(retry_after: str, least: float, most: float) -> None:
    (message,) = messages_for("webhook", [Change("new", INCIDENT)], "run", NOW)
    waited: list[float] = []
    with receiver(429, retry_after=retry_after) as (address, _):
        assert send(message, address, wait=waited.append) is None
    assert len(waited) == 1
    assert least <= waited[0] <= most


def test_retry_after_may_be_a_date() -> None:
    (message,) = messages_for("webhook", [Change("new", INCIDENT)], "run", NOW)
    waited: list[float] = []
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    with receiver(429, retry_after=date) as (address, _):
        assert send(message, address, wait=waited.append) is None
    assert 5 <= waited[0] <= 20


def test_refused_connection_is_reported_without_the_address() -> None:
    (message,) = messages_for("slack", [Change("new", INCIDENT)], "run", NOW)
    with receiver() as (address, _):
        pass
    problem = send(message, address, wait=lambda seconds: None)
    assert problem is not None
    assert "hook-secret" not in problem


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://host/x",
        "no url",
        "http://[x",
        "https://host/ö",
        "https://hooks..slack.com/x",
        "http://host:abc/",
    ],
)
def test_an_address_comes_from_the_environment_and_is_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="FLINK_TRIAGE_SLACK_URL is") as caught:
        address_of("slack", {VARIABLES["slack"]: address})
    assert not address or address not in str(caught.value)


def test_an_alertmanager_is_named_by_its_host() -> None:
    environment = {VARIABLES["alertmanager"]: "http://alerts:9093"}
    assert address_of("alertmanager", environment) == "http://alerts:9093/api/v2/alerts"
