"""Sends a message as an HTTP request; a failure is returned as a sentence."""

from __future__ import annotations

import email.utils
import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import IO

from flink_triage.alerts.messages import Kind, Message
from flink_triage.errors import UsageError

VARIABLES: Mapping[Kind, str] = {
    "slack": "FLINK_TRIAGE_SLACK_URL",
    "webhook": "FLINK_TRIAGE_WEBHOOK_URL",
    "alertmanager": "FLINK_TRIAGE_ALERTMANAGER_URL",
}
MAX_TRIES = 4
FIRST_WAIT_SECONDS = 1.0
# Maximum wait before a retry, even if the receiver requests a longer one.
MAX_WAIT_SECONDS = 30.0
TIMEOUT_SECONDS = 10.0


def address_of(kind: Kind, environment: Mapping[str, str] = os.environ) -> str:
    """The receiver's address, from an environment variable, because the address is a secret.

    If the path of an Alertmanager address is empty or ``/``, it is set to ``/api/v2/alerts``.
    Raises ``UsageError`` if the address is missing, or is not an http or https URL in ASCII.
    """
    variable = VARIABLES[kind]
    address = environment.get(variable, "")
    if not _is_http_url(address):
        got = "invalid" if address else "not set"
        raise UsageError(f"--alert {kind}: {variable} is {got}; expected an http(s) URL in ASCII")
    parts = urllib.parse.urlsplit(address)
    if kind == "alertmanager" and parts.path in ("", "/"):
        return parts._replace(path="/api/v2/alerts").geturl()
    return address


def _is_http_url(text: str) -> bool:
    """Whether urllib accepts the text as an HTTP URL."""
    try:
        parts = urllib.parse.urlsplit(text)
        host = (parts.hostname or "").encode("idna")
        _ = parts.port
    except ValueError:  # an unmatched bracket, an invalid label of the host, an invalid port
        return False
    return parts.scheme in ("http", "https") and host != b"" and text.isascii()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes urllib raise `HTTPError` for a redirect instead of following it without the body."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def send(message: Message, address: str, wait: Callable[[float], None] = time.sleep) -> str | None:
    """Send a message; return ``None``, or the reason for the failure.

    Connection errors, status 429, and status 500 and above are retried, up to ``MAX_TRIES`` tries.
    The reason, which is that of the last try, does not contain the address.
    """
    seconds, problem = FIRST_WAIT_SECONDS, ""
    for attempt in range(MAX_TRIES):
        if attempt:
            wait(min(seconds, MAX_WAIT_SECONDS))
            seconds *= 2
        try:
            request = urllib.request.Request(
                address, data=message.body, headers={"Content-Type": "application/json"}
            )
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS):
                return None
        except urllib.error.HTTPError as error:
            problem = f"the receiver responded with {error.code}"
            if 300 <= error.code < 400:
                return f"{problem}, a redirect; set the final URL"
            if error.code != 429 and error.code < 500:
                return problem
            asked = error.headers.get("Retry-After", "")
            seconds = max(seconds, _seconds_asked(asked, datetime.now(UTC)))
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", "") or type(error).__name__)
    return f"{problem}; tried {MAX_TRIES} times"


def _seconds_asked(retry_after: str, now: datetime) -> float:
    """The value of Retry-After (seconds or an HTTP date) in seconds from now; 0 if invalid."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        at = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    if at.tzinfo is None:  # The time zone is "-0000", which means UTC.
        at = at.replace(tzinfo=UTC)
    return (at - now).total_seconds()
