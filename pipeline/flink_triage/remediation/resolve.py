"""Adapts a remediation to a cluster: uses its Flink line's keys, and checks the current values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flink_triage.model import Action, ConfigChange, Remediation, TriedFix
from flink_triage.remediation import values
from flink_triage.remediation.class_jars import jar_step
from flink_triage.remediation.computed import new_amount, outside_text, stated
from flink_triage.remediation.config_conditions import Running, check, is_akka
from flink_triage.remediation.option_table import OptionTable, Setting
from flink_triage.remediation.placeholders import fill, one_line
from flink_triage.remediation.sensitive_options import HIDDEN, hide, is_sensitive
from flink_triage.remediation.steps import applicable_steps
from flink_triage.remediation.versions import LINES, line_note
from flink_triage.signatures.signature import ComputedValue, ConfigSpec, RemediationSpec

_VERB: dict[Action, str] = {"set": "set", "raise": "raise", "lower": "lower"}


@dataclass(frozen=True, slots=True)
class _Current:
    """The current value of an option, from the log or else the default of the Flink line."""

    value: str | None
    setting: Setting | None
    is_config_read: bool

    formatted: str = ""

    @property
    def words(self) -> str | None:
        if self.value is None:
            return "not set" if self.is_config_read else None
        if self.setting is not None:
            return self.formatted
        head = f"{self.formatted[:-1]}, " if self.formatted.endswith(")") else f"{self.formatted} ("
        return f"{head}default)"


def resolve(
    spec: RemediationSpec,
    *,
    flink_version: str | None,
    effective: Mapping[str, str],
    captures: Mapping[str, str],
    text: str = "",
    table: OptionTable | None = None,
) -> Remediation:
    """The remediation for one diagnosis, with the option names of the running Flink line.

    ``effective`` is the configuration from the log (old names are allowed), empty if none was read.
    ``text`` is text from the log. If it contains names of Akka and the version is unknown, the
    option names are those of Flink 1.17. Steps for messages that it does not contain are omitted
    (``applicable_steps``). An entry whose ``when`` is not met, and the removal of an
    option that a known configuration does not set, are omitted. An entry that only prevents the
    next failure, or whose option does not exist in the line, becomes a sentence in ``steps``. An
    entry that is already satisfied gets the action ``already-set``, or is omitted if it only
    prevents the next failure. If a class is missing and its JAR is known, the first step names the
    JAR. Log content never causes an exception.
    """
    running = Running(
        table or OptionTable.load(), flink_version, effective, captures, has_akka=is_akka(text)
    )
    changes: list[ConfigChange] = []
    notes: list[str] = []
    for entry in spec.config:
        outcome = _resolve_entry(entry, running)
        if isinstance(outcome, str):
            notes.append(outcome)
        elif outcome is not None and entry.purpose == "prevent":
            if outcome.action != "already-set":
                notes.append(_prevention(outcome))
        elif outcome is not None:
            is_live = spec.risk == "live" and outcome.scope == "platform"
            change = replace(outcome, restart=not is_live)
            if all((c.key, c.value) != (change.key, change.value) for c in changes):
                changes.append(change)
    note = line_note(flink_version)
    if note and changes:
        notes.append(note)
    return Remediation(
        summary=fill(spec.summary, captures),
        steps=(
            *_jar_steps(spec, captures),
            *(fill(step, captures) for step in applicable_steps(spec.all_steps, text)),
            *dict.fromkeys(notes),
        ),
        config=tuple(changes),
        risk=spec.risk,
        verify=fill(spec.verify, captures) if spec.verify else None,
        commonly_tried=tuple(
            TriedFix(fill(fix.advice, captures), fill(fix.assessment, captures))
            for fix in spec.commonly_tried
        ),
        references=spec.references,
    )


def _jar_steps(spec: RemediationSpec, captures: Mapping[str, str]) -> tuple[str, ...]:
    name = captures.get(spec.missing_class) if spec.missing_class else None
    step = jar_step(name) if name else None
    return (step,) if step else ()


def _resolve_entry(entry: ConfigSpec, running: Running) -> ConfigChange | str | None:
    """The change, a sentence that states why there is none, or ``None`` to omit the entry."""
    verdict = check(entry.when, running)
    if not verdict.holds:
        return None
    if entry.scope not in {"cluster", "job"}:
        return _outside_change(entry, running, verdict.unchecked)
    key = running.table.key_for(entry.key, running.naming_line)
    if key is None:
        return _missing_note(entry, running)
    current = _current(key, running)
    if entry.action == "remove":
        return _removal(entry, key, current, running, verdict.unchecked)
    value = _value(entry, key, current, running)
    is_done = _is_satisfied(entry.action, key, value, current, running)
    type_ = running.table.type_of(key, running.naming_line)
    shown = _shown(key, current, type_, running)
    if is_sensitive(key, type_) and not values.is_placeholder(value):
        value = "<secret>"
    return ConfigChange(
        key=key,
        value=hide(key, value, type_) if not values.is_placeholder(value) else value,
        action="already-set" if is_done else entry.action,
        reason=_reason(entry, key, value, shown, running, verdict.unchecked, is_done=is_done),
        scope=entry.scope,
        current=shown.value,
        current_source=_source(current),
    )


def _prevention(change: ConfigChange) -> str:
    """A sentence that recommends a change in addition to the fix."""
    words = change.reason.rstrip(".")
    if change.key not in words:
        words = f"set {change.key} to {change.value}. {words}".rstrip(". ")
    return f"In addition to the fix: {words}."


def _current(key: str, running: Running) -> _Current:
    setting = running.table.find(running.effective, key, running.line)
    value = setting.value if setting else running.default(key)
    return _Current(value, setting, bool(running.effective))


def _shown(key: str, current: _Current, type_: str | None, running: Running) -> _Current:
    """The current value for display, with secrets hidden, and units added to times and sizes."""
    if current.value is None:
        return current
    text = hide(key, current.value, type_)
    return replace(current, value=text, formatted=_formatted(key, text, running))


def _formatted(key: str, text: str, running: Running) -> str:
    line, table = running.naming_line, running.table
    return values.explain(table.type_of(key, line) or "String", text, table.default(key, line))


def _source(current: _Current) -> Literal["log", "default"] | None:
    if current.setting is not None:
        return "log"
    return "default" if current.value is not None else None


def _value(entry: ConfigSpec, key: str, current: _Current, running: Running) -> str:
    if isinstance(entry.value, str):
        text = one_line(fill(entry.value, running.captures))
    else:
        text = _computed(entry.value, key, current, running)
    return running.table.adapt(key, running.naming_line, text)


def _computed(value: ComputedValue, key: str, current: _Current, running: Running) -> str:
    """The new value in the format of the option's type, or a placeholder if it is unknown."""
    line, table = running.naming_line, running.table

    def amount(text: str | None) -> int | float | None:
        return table.amount(key, line, text) if text is not None else None

    log = stated(value, running.captures)
    is_unread = current.value is None and not current.is_config_read
    if log is None and is_unread and amount(value.at_least) is not None:
        # The unknown current value may be larger than the bound.
        return _times_present(value, f", at least {value.at_least}")
    wanted = new_amount(value, amount(current.value), log, amount)
    if wanted is None:
        return _times_present(value)
    type_ = table.type_of(key, line) or "String"
    return values.format_amount(wanted, type_, table.default(key, line))


def _times_present(value: ComputedValue, bound: str = "") -> str:
    """A placeholder for a value that the user must compute; ``bound`` is added to it."""
    return f"<{value.factor:g} times the current value{bound}>"


def _is_satisfied(
    action: Action, key: str, value: str, current: _Current, running: Running
) -> bool:
    """Whether the current value suffices; a default counts only if a configuration was read."""
    if current.value in {None, HIDDEN} or values.is_placeholder(value):
        return False
    if current.setting is None and not current.is_config_read:
        return False
    line, table = running.naming_line, running.table
    if action in {"raise", "lower"}:
        now, wanted = table.amount(key, line, current.value or ""), table.amount(key, line, value)
        if now is None or wanted is None:
            return current.value == value
        return now >= wanted if action == "raise" else now <= wanted
    return _is_equal(key, value, current, running)


def _is_equal(key: str, value: str, current: _Current, running: Running) -> bool:
    """Whether the current value equals ``value``, possibly in a different unit."""
    line, table = running.naming_line, running.table
    measured = table.measure(key, line, value)
    return current.value == value or (
        measured is not None and table.measure(key, line, current.value or "") == measured
    )


def _reason(
    entry: ConfigSpec,
    key: str,
    value: str,
    current: _Current,
    running: Running,
    unchecked: Sequence[str],
    *,
    is_done: bool,
) -> str:
    why = one_line(fill(entry.reason, running.captures))
    if is_done:
        return f"{key} is already {current.words}: look elsewhere"
    verb = _VERB.get(entry.action, "set") if current.value is not None else "set"
    now = current.words
    goal = _formatted(key, value, running)
    if current.setting is None and _is_equal(key, value, current, running):
        head = f"{key} is {goal} by default; set it back if your configuration changes it"
    elif now:
        head = f"{key} is {now}, {verb} to {goal}"
    else:
        head = f"{verb} {key} to {goal}"
    parts = [f"{head} ({', '.join(unchecked)})" if unchecked else head]
    if (log := _stated_words(entry, running)) is not None:
        parts.append(log)
    if why:
        parts.append(why[:-1] if why.endswith(".") else why)
    parts += _name_notes(key, current, running)
    return ". ".join(parts)


def _stated_words(entry: ConfigSpec, running: Running) -> str | None:
    """A sentence with the amount in the log from which the value was computed, if any."""
    if not isinstance(entry.value, ComputedValue):
        return None
    log = stated(entry.value, running.captures)
    return None if log is None else f"The log states {log.words}"


def _name_notes(key: str, current: _Current, running: Running) -> list[str]:
    notes = []
    if current.setting is not None and current.setting.name != key:
        notes.append(f"The configuration sets this option with its old key {current.setting.name}")
    if running.line is None:
        notes += _older_names(key, running.table)
    return notes


def _older_names(key: str, table: OptionTable) -> list[str]:
    """For an unknown version, sentences with the other keys of the option and their lines."""
    names: dict[str, list[str]] = {}
    for line in table.lines_of(key):
        names.setdefault(table.key_for(key, line) or key, []).append(line)
    return [
        f"In Flink {lines[0]} to {lines[-1]} the key is {name}"
        if len(lines) > 1
        else f"In Flink {lines[0]} the key is {name}"
        for name, lines in names.items()
        if name != key
    ]


def _removal(
    entry: ConfigSpec, key: str, current: _Current, running: Running, unchecked: Sequence[str]
) -> ConfigChange | None:
    """The removal; ``None`` if a configuration was read and does not contain the key."""
    if current.setting is None and current.is_config_read:
        return None
    name = current.setting.name if current.setting else key
    type_ = running.table.type_of(key, running.naming_line)
    shown = hide(name, current.setting.value, type_) if current.setting else None
    head = f"{name} is {shown}, remove it" if shown is not None else f"remove {name} if it is set"
    if unchecked:
        head += f" ({', '.join(unchecked)})"
    why = one_line(fill(entry.reason, running.captures)).rstrip(".")
    return ConfigChange(
        key=name,
        value="",
        action="remove",
        reason=f"{head}. {why}" if why else head,
        scope=entry.scope,
        current=shown,
        current_source="log" if shown is not None else None,
    )


def _outside_change(entry: ConfigSpec, running: Running, unchecked: Sequence[str]) -> ConfigChange:
    """The change of a connector, platform, or code setting, which is not in the option table."""
    value = entry.value
    if isinstance(value, str):
        text = one_line(fill(value, running.captures))
    else:
        text = outside_text(value, running.captures) or _times_present(value)
    if is_sensitive(entry.key) and not values.is_placeholder(text):
        text = HIDDEN
    reason = one_line(fill(entry.reason, running.captures))
    if (log := _stated_words(entry, running)) is not None:
        reason = f"{reason.rstrip('.')}. {log}"
    if unchecked:
        reason = f"{reason} ({', '.join(unchecked)})"
    return ConfigChange(
        key=entry.key, value=text, action=entry.action, reason=reason, scope=entry.scope
    )


def _missing_note(entry: ConfigSpec, running: Running) -> str:
    lines = running.table.lines_of(entry.key)
    if not lines:
        return f"{entry.key} is omitted: no known Flink line has this option."
    line = running.naming_line
    if LINES.index(line) < LINES.index(lines[0]):
        need = f"requires Flink {lines[0]} or later"
    elif LINES.index(line) > LINES.index(lines[-1]):
        need = f"exists only up to Flink {lines[-1]}"
    else:
        need = f"exists only in Flink {', '.join(lines)}"
    return f"{entry.key} {need}, but this is Flink {running.flink_version or line}."
