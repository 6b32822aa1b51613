"""What must not be printed of a configuration."""

from __future__ import annotations

import re

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT: what Flink itself prints instead

# GlobalConfiguration.SENSITIVE_KEYS of the newest line, and access keys, which it leaves open.
_SENSITIVE = (
    "password",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
    "access-key",
    "access.key",
    "credential",
)
_HARMLESS_TYPES = (
    *("Boolean", "Enum", "Duration", "MemorySize"),
    *("Integer", "Long", "Float", "Double"),
)
_ASSIGNMENT = re.compile(
    r"(?P<name>[\w.\-]*(?:password|passwd|secret|token|api-?key|access-?key)[\w.\-]*\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s,;'\"]+)",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?P<head>[a-z][\w+.\-]*://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE)


def is_sensitive(key: str, type_: str | None = None) -> bool:
    """Whether the value of ``key`` may be a secret; switches and numbers never are.

    ``security.delegation.tokens.enabled`` holds the word "token", and is a Boolean.
    """
    lowered = key.lower()
    if type_ is not None and type_.startswith(_HARMLESS_TYPES):
        return False
    return any(word in lowered for word in _SENSITIVE)


def hide(key: str, value: str, type_: str | None = None) -> str:
    """``value`` for printing: hidden for sensitive keys, without passwords that stand inside it."""
    if is_sensitive(key, type_):
        return HIDDEN
    return _URL_PASSWORD.sub(rf"\g<head>{HIDDEN}", _ASSIGNMENT.sub(rf"\g<name>{HIDDEN}", value))
