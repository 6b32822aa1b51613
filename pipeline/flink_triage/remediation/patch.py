"""Renders changes that users can paste into flink-conf.yaml, config.yaml, or a FlinkDeployment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import yaml

from flink_triage.errors import UsageError
from flink_triage.model import ConfigChange
from flink_triage.plain_yaml import load_plain_yaml
from flink_triage.remediation.placeholders import one_line
from flink_triage.remediation.sensitive_options import hide
from flink_triage.remediation.values import is_placeholder
from flink_triage.remediation.versions import LINES, flink_line

PatchForm = Literal["flink-conf.yaml", "config.yaml", "FlinkDeployment"]
FORMS: tuple[PatchForm, ...] = ("flink-conf.yaml", "config.yaml", "FlinkDeployment")

_CONFIG_YAML_SINCE = LINES.index("1.19")  # FLIP-366; flink-conf.yaml is read up to 1.20
_FLINK_CONF_UNTIL = LINES.index("1.20")
# A value that starts with one of these characters is quoted, because the character can have a
# meaning in YAML.
_SPECIAL = tuple("!&*-?|>@`%{}[],'\"#=~<")

# Numbers that Java prints exactly as written, without an exponent and without a lost zero.
_PLAIN_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]{0,17}|0\.[0-9]{0,2}[1-9]|[1-9][0-9]{0,5}\.(?:0|[0-9]{0,4}[1-9]))"
)


def default_form(flink_version: str | None) -> PatchForm:
    """The configuration file that a version reads by default; ``config.yaml`` if unknown."""
    line = flink_line(flink_version)
    is_old = line is not None and LINES.index(line) < _CONFIG_YAML_SINCE
    return "flink-conf.yaml" if is_old else "config.yaml"


def render_patch(
    changes: Sequence[ConfigChange], flink_version: str | None, form: PatchForm | None = None
) -> str:
    """The patch as text that ends in a newline; empty if there are no changes.

    The following are included only as comments: settings of connectors, platforms, and code; values
    that the user must choose or that contain a secret; values that ``flink-conf.yaml`` cannot
    contain; removals, except in a FlinkDeployment; and options that are already set. Raises
    ``UsageError`` for an unknown form.
    """
    form = form or default_form(flink_version)
    if form not in FORMS:
        raise UsageError(f'patch form: "{form}" is not one of {", ".join(FORMS)}')
    lines = [*_file_notes(flink_version, form)] if changes else []
    inside = [change for change in changes if change.scope in {"cluster", "job"}]
    if form == "FlinkDeployment":
        lines += _deployment(inside)
    else:
        quote = _plain if form == "flink-conf.yaml" else _yaml_scalar
        lines += [_setting(change, quote, form) for change in inside]
    lines += _outside(change for change in changes if change.scope not in {"cluster", "job"})
    return "\n".join(lines) + "\n" if lines else ""


def _file_notes(flink_version: str | None, form: PatchForm) -> list[str]:
    line = flink_line(flink_version)
    if line is None:
        return ["# the Flink version is unknown: check that your version has these keys"]
    index = LINES.index(line)
    if form == "config.yaml" and index < _CONFIG_YAML_SINCE:
        return [f"# Flink {line} does not read config.yaml: add these lines to flink-conf.yaml"]
    if form == "flink-conf.yaml" and index > _FLINK_CONF_UNTIL:
        return [f"# Flink {line} does not read flink-conf.yaml: add these lines to config.yaml"]
    return []


def _deployment(changes: Sequence[ConfigChange]) -> list[str]:
    """A merge patch in which every value is a string and ``null`` removes a key."""
    lines = [_setting(change, _json_string, "FlinkDeployment") for change in changes]
    if all(line.startswith("#") for line in lines):
        return lines
    return ["spec:", "  flinkConfiguration:", *(f"    {line}" for line in lines)]


def _setting(change: ConfigChange, quote: Callable[[str], str], form: PatchForm) -> str:
    key, value = one_line(change.key), one_line(change.value)
    now = _now(change)
    if change.action == "already-set":
        return f"# {key}: {one_line(change.current or value)}   # already set"
    if change.action == "remove":
        return f"{key}: null{now}" if form == "FlinkDeployment" else f"# remove {key}{now}"
    if is_placeholder(value):
        return f"# choose a value: {key}: {value}{now}"
    if form == "flink-conf.yaml" and ("#" in value or not value):
        # GlobalConfiguration truncates a line at "#", even inside quotes, and skips empty values.
        return f"# flink-conf.yaml cannot contain this value, pass it with -D: {key}={value}"
    if hide("", value) != value:
        return f"# contains a secret, set it yourself: {key}{now}"
    return f"{_key(key, form)}: {quote(value)}{now}"


def _now(change: ConfigChange) -> str:
    if change.current is None:
        return ""
    word = "default" if change.current_source == "default" else "now"
    return f"   # {word} {one_line(hide('', change.current))}"


def _key(key: str, form: PatchForm) -> str:
    return key if form == "flink-conf.yaml" else _yaml_scalar(key)


def _outside(changes: Iterable[ConfigChange]) -> list[str]:
    lines: list[str] = []
    for change in changes:
        key, value = one_line(change.key), hide(change.key, one_line(change.value))
        wish = f"remove {key}" if change.action == "remove" else f"{key} = {value}"
        reason = f"   ({one_line(change.reason)})" if change.reason else ""
        lines.append(f"# {change.scope}, not in this file: {wish}{reason}")
    return lines


def _plain(value: str) -> str:
    """The unquoted value: Flink does not parse flink-conf.yaml as YAML, and keeps quotes."""
    return value


def _json_string(value: str) -> str:
    """The value as a JSON string, which is also a YAML string."""
    return json.dumps(value, ensure_ascii=False)


def _yaml_scalar(value: str) -> str:
    """``value`` in YAML, quoted if a parser could return a different text.

    A YAML list or map in brackets is not quoted.
    """
    if value.startswith(("[", "{")):
        return value if _is_collection(value) else _single_quoted(value)
    if value in {"true", "false"} or _PLAIN_NUMBER.fullmatch(value):
        return value
    if not value or value[0] in _SPECIAL or value != value.strip() or _is_misread(value):
        return _single_quoted(value)
    return value


def _is_misread(value: str) -> bool:
    if ": " in value or " #" in value or value.endswith(":") or not value.isprintable():
        return True
    try:
        return bool(load_plain_yaml(value) != value)
    except yaml.YAMLError:
        return True


def _is_collection(value: str) -> bool:
    try:
        return isinstance(load_plain_yaml(value), list | dict)
    except yaml.YAMLError:
        return False


def _single_quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
