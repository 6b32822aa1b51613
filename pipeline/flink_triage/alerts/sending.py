"""A message in, an HTTP request out; whatever goes wrong comes back as a sentence."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping

from ..errors import UsageError
from .messages import Kind, Message

VARIABLES: Mapping[Kind, str] = {
    "slack": "FLINK_TRIAGE_SLACK_URL",
    "webhook": "FLINK_TRIAGE_WEBHOOK_URL",
    "alertmanager": "FLINK_TRIAGE_ALERTMANAGER_URL",
}
MAX_TRIES = 4
FIRST_WAIT_SECONDS = 1.0
# A receiver that asks for more patience than a run should have.
MAX_WAIT_SECONDS = 30.0
TIMEOUT_SECONDS = 10.0


def address_of(kind: Kind, environment: Mapping[str, str] = os.environ) -> str:
    """Where to send; only the environment says, since an address is a secret.

    Raises ``UsageError`` when it is missing, or no URL of http or https.
    """
    variable = VARIABLES[kind]
    address = environment.get(variable, "")
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        got = "nothing" if not address else "something else"
        raise UsageError(f"--alert {kind}: {variable} holds {got}; it has to hold an http(s) URL")
    if kind == "alertmanager" and parts.path in ("", "/"):
        return f"{address.rstrip('/')}/api/v2/alerts"
    return address


def send(message: Message, address: str, wait: Callable[[float], None] = time.sleep) -> str | None:
    """Send, trying again what may pass; None when it arrived, else why not, without the address."""
    seconds, problem = FIRST_WAIT_SECONDS, ""
    for attempt in range(MAX_TRIES):
        if attempt:
            wait(min(seconds, MAX_WAIT_SECONDS))
            seconds *= 2
        try:
            request = urllib.request.Request(
                address, data=message.body, headers={"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
                return None
        except urllib.error.HTTPError as error:
            problem = f"the receiver answered {error.code}"
            if error.code != 429 and error.code < 500:
                return problem
            asked = error.headers.get("Retry-After", "")
            seconds = max(seconds, float(asked) if asked.isdigit() else 0.0)
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", "") or type(error).__name__)
    return f"{problem}, {MAX_TRIES} times"
