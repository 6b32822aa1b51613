"""Parses the timestamp at the start of a log line into a timezone-aware UTC ``datetime``.

Supported formats:

- ISO 8601 and variants: ``2026-11-21T06:54:27.012Z``, also with a space or ``_`` instead of ``T``,
  with ``/`` or ``.`` instead of ``-``, and with a fraction of up to nine digits
- log4j 1's ``yy/MM/dd HH:mm:ss``
- dates with month names: ``21 Nov 2026 06:54:27,012``, ``Nov 21, 2026 6:54:27 AM``
- dates with the year last: ``21.11.2026 06:54:27``, ``11/21/2026 06:54:27,012``; with slashes, the
  first number is the month, unless it exceeds 12
- ``20261121 065427``, and epoch seconds (with a fraction) and milliseconds
- a time of day, which is recognized, but has no date and therefore yields ``None``
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

_FRACTION = r"(?:[.,:](?P<{0}>\d{{1,9}}))?"
_OFFSET = r"(?:[ ]?(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d|[+-]\d\d(?!\d)))?"

TIMESTAMP = rf"""
(?:
    (?P<ymd>\d{{4}}[-/.]\d\d[-/.]\d\d)(?:T|[ ]{{1,2}}|_)(?P<hms>\d\d:\d\d:\d\d)
    {_FRACTION.format("fraction")}{_OFFSET}
  | (?P<short_ymd>\d\d/\d\d/\d\d)[ ](?P<short_hms>\d\d:\d\d:\d\d)
    {_FRACTION.format("short_fraction")}
  | (?P<dmy>\d{{1,2}}[ /-](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{{0,6}}[ /-]
    \d{{4}})[ :](?P<dmy_hms>\d\d:\d\d:\d\d){_FRACTION.format("dmy_fraction")}
    {_OFFSET.replace("<offset>", "<dmy_offset>")}
  | (?P<mdy>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{{0,6}}[ ]\d{{1,2}},?[ ]
    \d{{4}}),?[ ](?:@[ ])?(?P<mdy_hms>\d{{1,2}}:\d\d:\d\d){_FRACTION.format("mdy_fraction")}
    (?:[ \u202f](?P<half>[AP]M))?
  | (?P<year_last>\d\d(?P<between>[./-])\d\d(?P=between)\d{{4}})[ T]
    (?P<year_last_hms>\d\d:\d\d:\d\d)
    {_FRACTION.format("year_last_fraction")}{_OFFSET.replace("<offset>", "<year_last_offset>")}
  | (?P<compact>\d{{8}}[ T]\d{{6}})(?!\d){_FRACTION.format("compact_fraction")}
  | (?P<epoch>1\d{{9}}(?:\d{{3}}|\.\d{{3,9}}))(?!\d)
  | (?P<time>\d\d:\d\d:\d\d[.,]\d{{3}})(?!\d)
  | (?P<bare_time>\d\d:\d\d:\d\d)(?![\d.,])
)
"""
_TIMESTAMP = re.compile(TIMESTAMP, re.VERBOSE)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def match_timestamp(text: str, start: int = 0) -> re.Match[str] | None:
    """The timestamp that starts at column ``start``, as a match of ``TIMESTAMP``."""
    return _TIMESTAMP.match(text, start)


def timestamp_of(match: re.Match[str], default_timezone: tzinfo) -> datetime | None:
    """The UTC time of a match of ``TIMESTAMP``; ``None`` if there is no date.

    Also ``None`` if the date or time is invalid, or the year is not in 1970 to 2199. A second of 60
    or more is read as 59, so that an event at a leap second has a time.
    """
    kind = match.lastgroup
    if match["ymd"]:
        moment = _second(match["ymd"], match["hms"], match["offset"] or "", default_timezone)
        return _with_fraction(moment, match["fraction"])
    if match["short_ymd"]:
        ymd = f"20{match['short_ymd']}"
        moment = _second(ymd, match["short_hms"], "", default_timezone)
        return _with_fraction(moment, match["short_fraction"])
    if match["year_last"]:
        ymd = _ymd_of_year_last(match["year_last"])
        offset = match["year_last_offset"] or ""
        moment = _second(ymd, match["year_last_hms"], offset, default_timezone)
        return _with_fraction(moment, match["year_last_fraction"])
    if match["epoch"]:
        return _from_epoch(match["epoch"])
    if match["compact"]:
        digits = match["compact"]
        ymd = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
        hms = f"{digits[9:11]}:{digits[11:13]}:{digits[13:15]}"
        return _with_fraction(_second(ymd, hms, "", default_timezone), match["compact_fraction"])
    for name in ("dmy", "mdy"):
        if match[name]:
            offset = (match["dmy_offset"] or "") if name == "dmy" else ""
            hms = _of_day(match[f"{name}_hms"], match["half"])
            moment = _second(_numeric(match[name]), hms, offset, default_timezone)
            return _with_fraction(moment, match[f"{name}_fraction"])
    assert kind is not None
    return None


def time_of_columns(second: str, fraction: str, default_timezone: tzinfo) -> datetime | None:
    """The UTC time of ``yyyy-MM-dd HH:mm:ss`` text and the digits of the fraction of a second.

    ``None`` under the same conditions as in ``timestamp_of``.
    """
    moment = _second(second[:10], second[11:], "", default_timezone)
    return _with_fraction(moment, fraction)


def parse_timestamp(text: str, default_timezone: tzinfo = UTC) -> datetime | None:
    """The UTC time of the timestamp at the start of ``text``, or ``None``."""
    match = _TIMESTAMP.match(text.strip())
    return timestamp_of(match, default_timezone) if match else None


def _ymd_of_year_last(date: str) -> str:
    """The date as year, month, and day.

    The day comes first. With slashes, the month comes first, unless the first number exceeds 12.
    """
    between = date[2]
    day, month, year = date.split(between)
    if between == "/" and int(day) <= 12:
        day, month = month, day
    return f"{year}-{month}-{day}"


def _of_day(hms: str, half: str | None) -> str:
    """The time of day in two-digit 24-hour form; the input may use the 12-hour clock."""
    hour, _, rest = hms.partition(":")
    if half is None:
        return f"{hour:>02}:{rest}"
    return f"{int(hour) % 12 + (12 if half == 'PM' else 0):02}:{rest}"


def _numeric(date: str) -> str:
    day, month, year = 0, 0, 0
    for part in re.split(r"[ ,/-]+", date):
        if part[:3] in _MONTHS:
            month = _MONTHS.index(part[:3]) + 1
        elif len(part) == 4:
            year = int(part)
        else:
            day = int(part)
    return f"{year:04}-{month:02}-{day:02}"


# Cached, because successive events often have the same second.
@lru_cache(maxsize=4096)
def _second(ymd: str, hms: str, offset: str, default_timezone: tzinfo) -> datetime | None:
    # No Flink log is outside of these years. Corrupt timestamps may contain the years 0000 and
    # 9999, which cause overflows.
    if not "1970" <= ymd[:4] <= "2199":
        return None
    zone = _zone(offset) if offset else default_timezone
    try:
        local = datetime(
            int(ymd[:4]),
            int(ymd[5:7]),
            int(ymd[8:10]),
            int(hms[:2]),
            int(hms[3:5]),
            min(int(hms[6:8]), 59),
            tzinfo=zone,
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=256)
def _zone(offset: str) -> tzinfo:
    if offset in ("Z", "UTC", "GMT"):
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:4])
    # No UTC offset is a day or longer; `timezone` rejects such offsets.
    minutes = min(minutes, 23 * 60 + 59)
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def _with_fraction(moment: datetime | None, fraction: str | None) -> datetime | None:
    if moment is None or not fraction:
        return moment
    return moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))


def _from_epoch(text: str) -> datetime | None:
    seconds, _, fraction = text.partition(".")
    if not fraction and len(seconds) == 13:
        seconds, fraction = seconds[:-3], seconds[-3:]
    moment = _EPOCH + timedelta(seconds=int(seconds))
    return _with_fraction(moment, fraction)


# The start of an event in Flink's default layout, but not of a line with a carrier prefix. For
# example, a fluentd record has braces in place of the logger.
_PLAIN_START = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{1,9} +(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +[\w\[]",
    re.ASCII,
)


def mostly_plain(lines: Sequence[str]) -> bool:
    """Whether more than half of the lines start like an event in Flink's default layout."""
    spare = (len(lines) - 1) // 2
    for line in lines:
        if not _PLAIN_START.match(line):
            spare -= 1
            if spare < 0:
                return False
    return True
