"""What a file is, whatever it is called: digests of its decompressed content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from flink_triage.settings import Settings

from .compression import open_decompressed
from .files import open_binary

HEAD_BYTES = 64 * 1024
_CHUNK = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContentIdentity:
    """``head`` is the digest of the first 64 KiB, ``prefix`` of all ``prefix_bytes``."""

    head: str
    prefix: str
    prefix_bytes: int


def identify(path: str, settings: Settings, up_to_bytes: int | None = None) -> ContentIdentity:
    """The identity of the first ``up_to_bytes`` decompressed bytes (all of them by default).

    A rotated or gzipped copy has the identity of its original; an appended file still has the
    old identity for the old length; a rewritten one has not.
    """
    whole = hashlib.sha256()
    head = hashlib.sha256()
    limit = settings.max_file_bytes if up_to_bytes is None else up_to_bytes
    count = 0
    with open_binary(path) as raw:
        stream = open_decompressed(raw, settings.max_file_bytes)
        while count < limit and (chunk := stream.read(min(_CHUNK, limit - count))):
            whole.update(chunk)
            if count < HEAD_BYTES:
                head.update(chunk[: HEAD_BYTES - count])
            count += len(chunk)
    return ContentIdentity(head.hexdigest(), whole.hexdigest(), count)
