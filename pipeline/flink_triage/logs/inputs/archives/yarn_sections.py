"""Splits the output of ``yarn logs`` into sections; each section is one file of a container."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from flink_triage.logs.inputs.archives.members import Member, Place
from flink_triage.settings import KIB, MIB

HEADING = re.compile(
    rb"^(?:Container: (?P<container>container_\w{1,128}) on (?P<host>\S{1,512})[^\n]{0,512}\n"
    rb"(?:LogAggregationType:[^\n]{0,512}\n)?(?:={3,512}\n)?)?LogType: ?(?P<name>[^\s/]{1,255})",
    re.MULTILINE,
)
# Maximum length of a heading.
_LONGEST = 4 * KIB
_CHUNK = 4 * MIB
# "node7.example.com_45454", optionally followed by the upload time.
_PORT = re.compile(r"(?:[_:]\d{1,20}){1,2}$")


def yarn_places(flat: BinaryIO) -> Iterator[Place]:
    """Yield the sections, which together cover the file; none if the file has no heading.

    Each section starts at its heading; the first section also includes the text before it.
    """
    names: dict[str, int] = {}
    container, host = "unknown", None
    # The current section, which ends at the next heading or at the end of the file.
    begin, open_name, open_host = 0, "", None
    end = 0
    for at, heading in _headings(flat):
        if heading is None:
            end = at
            break
        if heading["container"] is not None:
            container = heading["container"].decode("ascii", "replace")
            host = _PORT.sub("", heading["host"].decode("utf-8", "replace")) or None
        name = f"{container}/{heading['name'].decode('utf-8', 'replace')}"
        names[name] = number = names.get(name, 0) + 1
        if open_name:
            yield Place(Member(open_name, at - begin, host=open_host), begin)
            begin = at
        open_name, open_host = name if number == 1 else f"{name}.{number}", host
    if open_name:
        yield Place(Member(open_name, end - begin, host=open_host), begin)


def _headings(flat: BinaryIO) -> Iterator[tuple[int, re.Match[bytes] | None]]:
    """Each heading with its offset, followed by ``None`` with the offset of the end of the file."""
    flat.seek(0)
    data, offset, start = b"", 0, 0
    while True:
        more = flat.read(_CHUNK)
        data += more
        # A heading after this position may be incomplete; it is searched for again with the next
        # block.
        sure = len(data) - _LONGEST if more else len(data)
        for match in HEADING.finditer(data, start):
            if match.start() >= sure:
                break
            yield offset + match.start(), match
            start = match.end()
        if not more:
            yield offset + len(data), None
            return
        # The byte before the start determines whether a line starts there.
        start = max(start, sure)
        kept = max(start - 1, 0)
        data, offset, start = data[kept:], offset + kept, start - kept
