"""The option table: the keys, types, and defaults of each Flink line.

The data is in ``patterns/flink-options/options.tsv``, which was collected from released JARs
(``docs/flink-options.md``). A Flink line silently ignores unknown options, so a key is recommended
only if the line reads it, or probably reads it, according to this table, or if it belongs to an
open family (see ``OPEN_PREFIXES``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from flink_triage.remediation import values
from flink_triage.remediation.option_file import Row, read_rows
from flink_triage.remediation.versions import LINES, NEWEST
from flink_triage.signatures.pack import builtin_pack_directory

# Maximum number of cached lookups, because a configuration in a log may contain any number of keys.
_MAX_LOOKUPS = 8192
# Options of Flink 2.x that all earlier lines pass to the S3 client
# (docs/deployment/filesystems/s3, and MIRRORED_CONFIG_KEYS of S3FileSystemFactory).
_PASSED_THROUGH = ("s3.access-key", "s3.secret-key", "s3.endpoint", "s3.path-style-access")
# Prefixes of open families of keys, which are not ConfigOptions: Flink passes these keys to a
# reporter, a file system, Hadoop, a token provider, or a process environment.
OPEN_PREFIXES: tuple[str, ...] = (
    "metrics.reporter.",
    "traces.reporter.",
    "events.reporter.",
    "containerized.master.env.",
    "containerized.taskmanager.env.",
    "security.delegation.token.provider.",
    "flink.hadoop.",
    "flink.yarn.",
    "fs.s3a.",
    "fs.azure.",
    "fs.gs.",
    "fs.oss.",
    "presto.s3.",
    "s3.",
    "s3a.",
    "gs.",
)

# Options that were split into several options, with the main successor.
_MAIN_SUCCESSOR = {"state.backend.local-recovery": "execution.state-recovery.from-local"}

# The effective values of options without a default, as implemented in
# CheckpointConfig.getTolerableCheckpointFailureNumber and StateBackendLoader.
_IMPLIED_DEFAULTS = {
    "execution.checkpointing.tolerable-failed-checkpoints": "0",
    "state.backend.type": "hashmap",
    "state.backend": "hashmap",
}


@dataclass(frozen=True, slots=True)
class Option:
    """The properties of one option name in one Flink line.

    ``status`` is ``current``, ``deprecated``, ``alias:<new>``, ``fallback:<new>``, ``unknown`` (the
    line ignores the name), or ``not-known-here`` (its module was not published for that line).
    ``type`` and ``default`` are set only if the line has an option of this name; ``default`` is
    ``None`` if the option has no default. If the key is not set, ``other_names`` are read in this
    order.
    """

    key: str
    line: str
    status: str
    type: str = ""
    default: str | None = None
    other_names: tuple[str, ...] = ()
    scope: str = ""

    @property
    def is_own(self) -> bool:
        return self.status in {"current", "deprecated"}

    @property
    def targets(self) -> tuple[str, ...]:
        """The options that read this name, if it is only an old name of other options."""
        kind, _, names = self.status.partition(":")
        return tuple(names.split("|")) if kind in {"alias", "fallback"} else ()


@dataclass(frozen=True, slots=True)
class Setting:
    """A value in a configuration, and the key under which it was found."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class OptionTable:
    """All known names with their rows, and with their older and newer names.

    The table is kept for the lifetime of the process. Lookups are cached, because all incidents use
    the same few dozen names.
    """

    _rows: Mapping[str, tuple[Row, ...]]
    _old_names: Mapping[str, tuple[str, ...]]
    _new_names: Mapping[str, tuple[str, ...]]

    @staticmethod
    def load() -> OptionTable:
        """The table that ships with the package, which is read once."""
        return _load(options_directory() / "options.tsv")

    @property
    def keys(self) -> Iterable[str]:
        return self._rows.keys()

    def option(self, key: str, line: str) -> Option:
        """The option ``key`` in ``line``; a name without a row has the status ``unknown``."""
        index = LINES.index(line)
        for first, last, fields in self._rows.get(key, ()):
            if first <= index <= last:
                status, type_, default, others, scope = fields
                if status == "?":
                    return self._unpublished(key, line)
                is_unset = default in {"", "(none)"} and status in {"current", "deprecated"}
                return Option(
                    key=key,
                    line=line,
                    status=status,
                    type=type_,
                    default=None if is_unset or not type_ else default,
                    other_names=tuple(name.lstrip("~") for name in others.split(";") if name),
                    scope=scope,
                )
        return Option(key, line, "unknown")

    def status(self, key: str, line: str) -> str:
        return self.option(key, line).status

    def key_for(self, key: str, line: str) -> str | None:
        """The name under which ``line`` reads the option that is called ``key`` in any line.

        If the line has an option ``key``, this is ``key``. Otherwise, it is the option that reads
        ``key`` as an old name, or else one of the older and newer names of ``key``: a current one,
        or else a deprecated one. If there is no such name, it is still ``key`` if the line probably
        has the option, but the option's module was not published for it. A key of an open family
        (``s3.*``, ``metrics.reporter.*``) that is not an option, or that is only a fallback key of
        one, is returned unchanged for every line. An entry of a map option is returned for each
        line that has the map. ``None`` if the line has no such option.
        """
        return self._key_for(key, line) or (key if self._is_open(key, line) else None)

    def lines_of(self, key: str) -> tuple[str, ...]:
        """The lines that read this option under any name, oldest first."""
        return tuple(line for line in LINES if self.key_for(key, line) is not None)

    def names_of(self, key: str) -> tuple[str, ...]:
        """All names of the option: the newest name, ``key``, and then the older names."""
        newest = self.key_for(key, NEWEST) or key
        return tuple(dict.fromkeys((newest, key, *self._older(newest), *self._older(key))))

    def default(self, key: str, line: str) -> str | None:
        """The option's default in that line; ``None`` if it is unknown or there is none."""
        own = self._own(key, line)
        return own.default if own else None

    def effective_default(self, key: str, line: str) -> str | None:
        """The default, or the value that Flink uses if the option declares no default."""
        declared = self.default(key, line)
        return declared if declared is not None else _IMPLIED_DEFAULTS.get(key)

    def type_of(self, key: str, line: str) -> str | None:
        """The type as in the table (see ``values``); ``None`` if the line does not read the key."""
        own = self._own(key, line)
        if own is not None:
            return own.type
        return "String" if self._is_open(key, line) else None

    def problem(self, key: str, line: str, value: str) -> str | None:
        """The reason why the line rejects or ignores ``key: value``; ``None`` if it is accepted."""
        type_ = self.type_of(key, line)
        if type_ is None:
            return f"Flink {line} does not have this option"
        try:
            values.parse_value(type_, value, line)
        except ValueError as problem:
            return f"{problem} ({type_})"
        return None

    def accepts(self, key: str, line: str, value: str) -> bool:
        """Whether the line reads the option, and the value is valid for the option's type."""
        return self.problem(key, line, value) is None

    def adapt(self, key: str, line: str, value: str) -> str:
        """``value`` in the format of the line: ``120000`` for ``2 min`` if the type is Long(ms)."""
        own = self._own(key, line)
        return values.adapt(own.type, value, own.default) if own else value

    def measure(self, key: str, line: str, value: str) -> values.Parsed | None:
        """The value in a form that can be compared; ``None`` if it is invalid for the option.

        The value of a name that is not an option is returned unchanged.
        """
        own = self._comparing(key, line)
        return value if own is None else values.measure(own.type, value, own.default)

    def amount(self, key: str, line: str, value: str) -> int | float | None:
        """The value as a number, nanoseconds, or bytes, if the option is a quantity.

        The value of a name that is not an option is parsed as a number, a Duration, or a
        MemorySize, whichever fits first.
        """
        own = self._comparing(key, line)
        if own is not None:
            return values.amount_of(own.type, value, own.default)
        return next(
            (
                amount
                for type_ in ("Long", "Double", "Duration", "MemorySize")
                if (amount := values.amount_of(type_, value)) is not None
            ),
            None,
        )

    def find(self, effective: Mapping[str, str], key: str, line: str | None) -> Setting | None:
        """The value that ``line`` reads for ``key`` from a configuration, and the key used there.

        As in Configuration, the key is looked up first, followed by its fallback and deprecated
        keys. Without a line, all names of the option are looked up, in the order of ``names_of``.
        """
        if line is None:
            names: Iterable[str] = self.names_of(key)
        else:
            known = self.key_for(key, line)
            if known is None:
                return None
            names = (known, *self.option(known, line).other_names)
        return next((Setting(name, effective[name]) for name in names if name in effective), None)

    def canonical(self, effective: Mapping[str, str]) -> dict[str, str]:
        """The configuration with the option names of the newest line; unknown names are kept.

        An old name that was split into several options sets all of them. An old name does not
        override a name that is already set.
        """
        result: dict[str, str] = {}
        renamed: dict[str, str] = {}
        for name, value in effective.items():
            newer = self._newest_names(name)
            if newer == (name,):
                result[name] = value
            else:
                renamed.update((new, value) for new in newer)
        return {**renamed, **result}

    def _newest_names(self, name: str) -> tuple[str, ...]:
        option = self.option(name, NEWEST)
        if option.is_own:
            return (name,)
        if option.targets:
            return option.targets
        newest = self._key_for(name, NEWEST)
        return (newest,) if newest else (name,)

    def is_quantity(self, key: str, line: str) -> bool:
        """Whether values of the option are ordered."""
        own = self._comparing(key, line)
        return own is not None and values.is_quantity(own.type, own.default)

    def _comparing(self, key: str, line: str) -> Option | None:
        """The option whose type determines how values are compared.

        A String option that is a quantity in the newest Flink line is compared as this quantity.
        """
        own = self._own(key, line)
        if own is None or own.type != "String":
            return own
        newest = self._own(key, NEWEST)
        return newest if newest and values.is_quantity(newest.type, newest.default) else own

    @lru_cache(maxsize=_MAX_LOOKUPS)  # noqa: B019
    def _own(self, key: str, line: str) -> Option | None:
        known = self._key_for(key, line)
        if known is None:
            return None
        option = self.option(known, line)
        if option.is_own:
            return option
        # Use the option that reads this old name, or the option in the nearest line that has it.
        return next(
            (
                own
                for name, at in self._neighbours(known, line, option)
                if (own := self.option(name, at)).is_own
            ),
            None,
        )

    def _neighbours(self, key: str, line: str, option: Option) -> Iterator[tuple[str, str]]:
        yield from ((target, line) for target in option.targets)
        index = LINES.index(line)
        nearest = sorted(LINES, key=lambda other: abs(LINES.index(other) - index))
        yield from ((key, near) for near in nearest)

    @lru_cache(maxsize=_MAX_LOOKUPS)  # noqa: B019
    def _key_for(self, key: str, line: str) -> str | None:
        option = self.option(key, line)
        if option.is_own:
            return key
        if option.targets:
            if option.status.startswith("fallback:") and key.startswith(OPEN_PREFIXES):
                return key  # the new name applies to one plugin, the old name to any plugin
            main = _MAIN_SUCCESSOR.get(key)
            return main if main in option.targets else option.targets[0]
        candidates = (*self._older(key), *self._newer(key))
        siblings = (old for name in candidates for old in self._older(name))
        reachable = dict.fromkeys((*candidates, *siblings))
        for status in ("current", "deprecated"):
            for name in reachable:
                if self.option(name, line).status == status:
                    return name
        return key if option.status == "not-known-here" else None

    def _older(self, key: str) -> tuple[str, ...]:
        return _closure(key, self._old_names)

    def _newer(self, key: str) -> tuple[str, ...]:
        return _closure(key, self._new_names)

    def _is_open(self, key: str, line: str) -> bool:
        if self.option(key, line).status != "unknown":
            return False
        if key.startswith(OPEN_PREFIXES):
            # Every line passes s3.access.key through, although newer lines have options for it.
            rows = self._rows.get(key, ())
            is_old_name = any(fields[0].startswith("fallback:") for _, _, fields in rows)
            return not rows or is_old_name or key in _PASSED_THROUGH
        # ConfigurationUtils.canBePrefixMap: "<map option>.<entry>" sets one entry of the map.
        parts = key.split(".")
        return any(
            self.option(".".join(parts[:count]), line).type == "Map"
            for count in range(1, len(parts))
        )

    def _unpublished(self, key: str, line: str) -> Option:
        """The option ``key`` in a line for which its module was not published.

        The line is assumed to have the key if an earlier and a later line have it. If the module
        was not published for any later line, an earlier line is sufficient.
        """
        index = LINES.index(line)
        spans = [(first, last, fields[0]) for first, last, fields in self._rows[key]]
        owners = [span for span in spans if span[2] in {"current", "deprecated"}]
        is_before = any(last < index for _, last, _ in owners)
        is_after = any(first > index for first, _, _ in owners)
        is_tail = all(status == "?" for _, last, status in spans if last >= index) and (
            max(last for _, last, _ in spans) == len(LINES) - 1
        )
        known = is_before and (is_after or is_tail)
        return Option(key, line, "not-known-here" if known else "unknown")


def options_directory() -> Path:
    """The ``flink-options`` directory next to the signatures, in the wheel or the source tree."""
    return builtin_pack_directory() / "flink-options"


@cache
def _load(path: Path) -> OptionTable:
    rows, renames = read_rows(path)
    old_names: dict[str, dict[str, None]] = {}
    new_names: dict[str, dict[str, None]] = {}
    for old, new in renames:
        old_names.setdefault(new, {})[old] = None
        new_names.setdefault(old, {})[new] = None
    return OptionTable(
        _rows=rows,
        _old_names={new: tuple(olds) for new, olds in old_names.items()},
        _new_names={old: tuple(news) for old, news in new_names.items()},
    )


def _closure(key: str, edges: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting = [key]
    while waiting:
        for name in edges.get(waiting.pop(0), ()):
            if name not in found and name != key:
                found[name] = None
                waiting.append(name)
    return tuple(found)
