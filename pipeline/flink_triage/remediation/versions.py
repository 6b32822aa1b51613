"""Maps Flink version strings in logs to a known Flink line, such as ``1.16``."""

from __future__ import annotations

import re
from functools import lru_cache

LINES: tuple[str, ...] = (
    "1.13",
    "1.14",
    "1.15",
    "1.16",
    "1.17",
    "1.18",
    "1.19",
    "1.20",
    "2.0",
    "2.1",
    "2.2",
    "2.3",
)
OLDEST, NEWEST = LINES[0], LINES[-1]
# Since Flink 1.18, RPC uses Pekko (FLINK-32468).
LAST_WITH_AKKA = "1.17"

# Distributions print their own version first (vvr-8.0.1-flink-1.17), so "flink-" takes precedence.
_AFTER_NAME = re.compile(r"flink[-_ ]?v?(\d{1,3}(?:\.\d{1,4}){1,2})", re.IGNORECASE)
_ANYWHERE = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,4}){1,2})")
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<|=)?\s*v?(\d{1,3}(?:\.\d{1,4}){0,2})(\.[x*])?\s*")

Version = tuple[int, ...]


def parse_version(text: str | None) -> Version | None:
    """The numbers in a version: (1, 16, 0) for ``1.16.0-amzn-1``; ``None`` without a version."""
    if not text:
        return None
    found = _AFTER_NAME.search(text) or _ANYWHERE.search(text)
    return tuple(int(part) for part in found[1].split(".")) if found else None


@lru_cache(maxsize=256)
def flink_line(version: str | None) -> str | None:
    """The known line for a version, or ``None`` if the text contains no version such as ``1.16``.

    A version newer than the newest known line maps to the newest line, a version older than the
    oldest line maps to the oldest line, and a version between two lines maps to the lower line.
    ``line_note`` explains the difference.
    """
    numbers = parse_version(version)
    if numbers is None:
        return None
    known = [line for line in LINES if _numbers(line) <= numbers[:2]]
    return known[-1] if known else OLDEST


def is_line_since(line: str, first: str) -> bool:
    """Whether ``line`` is ``first`` or newer; both are in ``LINES``."""
    return LINES.index(line) >= LINES.index(first)


def line_note(version: str | None) -> str | None:
    """A sentence if ``flink_line`` returns a line other than the version's; else ``None``."""
    numbers = parse_version(version)
    if numbers is None or numbers[:2] in {_numbers(line) for line in LINES}:
        return None
    asked = ".".join(str(number) for number in numbers[:2])
    if numbers[:2] > _numbers(NEWEST):
        return (
            f"Flink {asked} is newer than the newest known line: "
            f"the keys are those of {NEWEST}; check them before use."
        )
    return (
        f"The options of Flink {asked} are unknown: "
        f"the keys are those of {flink_line(version)}; check them before use."
    )


def parse_range(text: str) -> tuple[tuple[str, Version], ...]:
    """The clauses of a range: ``>=1.15,<2.0`` becomes ((">=", (1, 15)), ("<", (2, 0))).

    A version without an operator (``1.16``) denotes that line or release. Raises ``ValueError`` if
    a clause is not a comparison.
    """
    clauses: list[tuple[str, Version]] = []
    for part in text.split(","):
        found = _CLAUSE.fullmatch(part)
        if found is None:
            raise ValueError(f'"{part.strip()}" is not like ">=1.15", "<2.0" or "1.16"')
        operator = found[1] or "=="
        clauses.append(
            ("==" if operator == "=" else operator, tuple(int(n) for n in found[2].split(".")))
        )
    return tuple(clauses)


def version_in(text: str, numbers: Version) -> bool:
    """Whether a version is, or may be, in a range.

    Numbers that the version or the bound omits are not compared. For example, ``1.15.3`` is in
    ``1.15`` and in ``<=1.15``, and the line ``1.19`` may be in ``>=1.19.2``. Raises ``ValueError``
    like ``parse_range``.
    """
    return all(_holds(operator, bound, numbers) for operator, bound in parse_range(text))


def lines_in(text: str | None) -> tuple[str, ...]:
    """The known lines that may have patch releases in a range; all known lines without a range.

    Raises ``ValueError`` like ``parse_range``.
    """
    if text is None:
        return LINES
    return tuple(line for line in LINES if version_in(text, _numbers(line)))


def _holds(operator: str, bound: Version, numbers: Version) -> bool:
    shared = min(len(bound), len(numbers))
    left, right = numbers[:shared], bound[:shared]
    # A line does not specify a patch release: some 1.19 releases are below 1.19.2, others are not.
    is_open = left == right and len(numbers) < len(bound)
    match operator:
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case ">":
            return left > right or is_open
        case "<":
            return left < right or (is_open and any(bound[shared:]))
        case "!=":
            return left != right or is_open
        case _:
            return left == right


def _numbers(line: str) -> Version:
    return tuple(int(number) for number in line.split("."))
