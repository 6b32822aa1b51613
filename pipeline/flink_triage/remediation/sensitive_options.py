"""Hides sensitive values in a configuration; see ``logs.text.secret_forms`` for the rules."""

from __future__ import annotations

from flink_triage.logs.text.redact import redact
from flink_triage.logs.text.secret_forms import is_secret_key

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT, which Flink itself prints instead

_HARMLESS_TYPES = (
    *("Boolean", "Enum", "Duration", "MemorySize"),
    *("Integer", "Long", "Float", "Double"),
)


def is_sensitive(key: str, type_: str | None = None) -> bool:
    """Whether the value of ``key`` may be a secret, according to the words in the key.

    Booleans, enums, numbers, durations, and sizes are not secrets. For example,
    ``security.delegation.tokens.enabled`` contains the word "token", but is a Boolean.
    """
    if type_ is not None and type_.startswith(_HARMLESS_TYPES):
        return False
    return is_secret_key(key)


def hide(key: str, value: str, type_: str | None = None) -> str:
    """``value`` for printing: hidden if the key is sensitive, otherwise with secrets masked."""
    return HIDDEN if is_sensitive(key, type_) else redact(value)[0]
