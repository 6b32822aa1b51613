"""Lists and opens files at URIs such as ``s3a://bucket/key``.

Uses Arrow's file systems, which work in the driver and in Python workers. Spark itself does not
support reading part of a file in a Python worker. Credentials come from the default provider chain
of each store (environment, profile, instance role), unless ``use_options`` sets credentials for S3
or Azure. HDFS uses the Hadoop configuration of the machine. Credentials set by ``use_options`` are
masked in error messages.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, BinaryIO, cast

from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.settings import KIB, MIB

SCHEMES: Mapping[str, str] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "abfs": "azure",
    "abfss": "azure",
    "gs": "gcs",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
}
# A request takes as long as reading about 1 MiB. Often, only the head of a file is read, so the
# read-ahead size starts small and doubles during sequential reads.
_FIRST_BYTES = 256 * KIB
_MOST_BYTES = 8 * MIB
# The general option, and one for each host.
_AZURE_KEY = "fs.azure.account.key"
_SECRET_ENDINGS = ("key", "token")


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Options with Hadoop's names (``fs.s3a.endpoint``); ``repr`` omits their values."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, name: str, bucket: str) -> str | None:
        """The bucket-specific value (``fs.s3a.bucket.NAME.…``), or else the general value."""
        own = self.values.get(name.replace("fs.s3a.", f"fs.s3a.bucket.{bucket}.", 1))
        return self.values.get(name) if own is None else own


@dataclass(frozen=True, slots=True)
class StoredFile:
    uri: str
    size_bytes: int
    modified_at: datetime


# Global, like the environment variables that it replaces, because the code that opens streams
# cannot access a Spark session.
NO_OPTIONS = StorageOptions()
_OPTIONS = NO_OPTIONS


def use_options(options: StorageOptions) -> None:
    """Set the options for the files that this process opens and lists from now on."""
    global _OPTIONS
    _OPTIONS = options


def is_uri(path: str) -> bool:
    """Whether ``path`` is a URI of a remote file; false for ``file:`` URIs and plain paths."""
    return "://" in path and path.partition("://")[0].isalnum() and not path.startswith("file:")


def is_object(path: str) -> bool:
    """Whether ``path`` is in S3, Azure, or GCS, where files are usually replaced as a whole."""
    return is_uri(path) and SCHEMES.get(path.partition("://")[0]) in ("s3", "azure", "gcs")


def local_path(path: str) -> str:
    """``/logs`` for ``file:/logs`` and ``file:///logs``; any other path is returned unchanged."""
    if not path.startswith("file:/"):
        return path
    return "/" + path.removeprefix("file:").lstrip("/")


def split_uri(uri: str) -> tuple[str, str, str]:
    """Scheme, authority, and path without leading and trailing slashes, all of them undecoded."""
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    return scheme, authority, path.strip("/")


def list_stored(root: str) -> Iterator[StoredFile] | None:
    """All files below ``root``, or ``root`` itself if it is a file.

    Returns ``None`` if ``root`` does not exist. Raises ``UsageError`` for an unknown scheme,
    ``EnvironmentProblem`` if PyArrow is missing, and ``OSError`` if the listing fails.
    """
    system, place = _place(root)
    from pyarrow import fs

    with _as_os_errors(root):
        info = system.get_file_info(place)
        if info.type == fs.FileType.NotFound:
            return None
        if info.type == fs.FileType.File:
            return iter((_stored(root, info),))
        found = system.get_file_info(fs.FileSelector(place, recursive=True))
    # Keep the scheme of the given URI: `s3a://` stays `s3a://`.
    return (
        _stored(f"{root.rstrip('/')}/{item.path[len(place) :].strip('/')}", item)
        for item in found
        if item.type == fs.FileType.File
    )


def _stored(uri: str, info: Any) -> StoredFile:
    return StoredFile(uri, info.size, info.mtime or datetime.fromtimestamp(0, tz=UTC))


def stat_stored(uri: str) -> StoredFile:
    """The current size and modification time of ``uri``.

    Raises ``OSError`` if it is not a file or cannot be accessed, and the other errors of
    ``open_stored``.
    """
    system, place = _place(uri)
    with _as_os_errors(uri):
        info = system.get_file_info(place)
        if not info.is_file:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
    return _stored(uri, info)


def open_stored(uri: str) -> BinaryIO:
    """A seekable byte stream of ``uri``.

    Raises ``OSError`` if it cannot be opened, ``UsageError`` for an unknown scheme, and
    ``EnvironmentProblem`` if PyArrow is missing.
    """
    system, place = _place(uri)
    with _as_os_errors(uri):
        return cast(BinaryIO, _StoredStream(uri, system.open_input_file(place)))


class _StoredStream(io.RawIOBase):
    """A file in a store; reads ahead to avoid a request for each small read."""

    def __init__(self, uri: str, source: Any, first_bytes: int = _FIRST_BYTES) -> None:
        self._uri = uri
        self._source = source
        self._size = source.size()
        self._at = 0
        self._held = b""
        self._held_at = 0
        self._first_bytes = first_bytes
        self._ahead = first_bytes

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        held_end = self._held_at + len(self._held)
        if not self._held_at <= self._at < held_end:
            is_next = self._at == held_end
            self._fetch(end, is_next=is_next)
            return self._take(end)
        first = self._take(min(end, held_end))
        if end <= held_end:
            return first
        self._fetch(end, is_next=True)
        return first + self._take(end)

    def _take(self, end: int) -> bytes:
        part = self._held[self._at - self._held_at : end - self._held_at]
        self._at += len(part)
        return part

    def _fetch(self, end: int, *, is_next: bool) -> None:
        self._ahead = min(self._ahead * 2, _MOST_BYTES) if is_next else self._first_bytes
        wanted = min(max(end - self._at, self._ahead), self._size - self._at)
        with _as_os_errors(self._uri):
            self._held = self._source.read_at(wanted, self._at)
        self._held_at = self._at

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def _place(uri: str) -> tuple[Any, str]:
    """The file system of ``uri``, and its path in that file system."""
    scheme, authority, path = split_uri(uri)
    kind = SCHEMES.get(scheme)
    if kind is None:
        raise UsageError(
            f"input: {uri!r} has an unknown scheme; expected a path or {', '.join(SCHEMES)}"
        )
    try:
        import pyarrow.fs  # noqa: F401
    except ImportError:
        raise EnvironmentProblem(
            f"{uri}: pyarrow is required to access this URI; pip install 'flink-triage[spark]'"
        ) from None
    with _as_os_errors(uri):
        system = _file_system(kind, scheme, authority, _OptionsKey(_OPTIONS), os.getpid())
    if kind == "hdfs":
        place = f"/{path}"
    else:
        place = "/".join(part for part in (authority.split("@")[0], path) if part)
    return system, place


class _OptionsKey:
    """Options as a hashable cache key."""

    def __init__(self, options: StorageOptions) -> None:
        self.options = options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OptionsKey) and self.options.values == other.options.values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.options.values.items())))


@lru_cache(maxsize=64)
def _file_system(kind: str, scheme: str, authority: str, key: _OptionsKey, process: int) -> Any:
    """Create a file system; each process needs its own, because clients do not survive a fork."""
    del process
    from pyarrow import fs

    options = key.options
    if kind == "s3":
        return fs.S3FileSystem(**_s3_arguments(options, authority))
    if kind == "azure":
        return fs.AzureFileSystem(**_azure_arguments(options, authority))
    if kind == "gcs":
        return fs.GcsFileSystem()
    # libhdfs reads the NameNode, user, and Kerberos settings from the machine's Hadoop
    # configuration.
    host, _, port = authority.rpartition(":") if ":" in authority else (authority, "", "0")
    if scheme == "viewfs":
        return fs.HadoopFileSystem(f"viewfs://{authority}", 0)
    return fs.HadoopFileSystem(host or "default", int(port))


def _s3_arguments(options: StorageOptions, bucket: str) -> dict[str, Any]:
    """Arguments from S3A's endpoint, region, role, and credential options.

    Arrow's defaults apply to options that are not set.
    """
    found: dict[str, Any] = {}
    for argument, name in (
        ("access_key", "fs.s3a.access.key"),
        ("secret_key", "fs.s3a.secret.key"),
        ("session_token", "fs.s3a.session.token"),
        ("region", "fs.s3a.endpoint.region"),
        ("role_arn", "fs.s3a.assumed.role.arn"),
    ):
        value = options.get(name, bucket)
        if value:
            found[argument] = value
    endpoint = options.get("fs.s3a.endpoint", bucket)
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        is_plain = options.get("fs.s3a.connection.ssl.enabled", bucket) == "false"
        found["endpoint_override"] = host.rstrip("/")
        found["scheme"] = scheme or ("http" if is_plain else "https")
    provider = options.get("fs.s3a.aws.credentials.provider", bucket) or ""
    if provider.endswith("AnonymousAWSCredentialsProvider"):
        found["anonymous"] = True
    return found


def _azure_arguments(options: StorageOptions, authority: str) -> dict[str, Any]:
    """Arguments for ``container@account.dfs.core.windows.net``.

    Credentials are an account key, or those of Azure's default credential chain.
    """
    _, _, host = authority.rpartition("@")
    account = host.split(".")[0]
    found: dict[str, Any] = {"account_name": account}
    key = options.values.get(f"{_AZURE_KEY}.{host}") or options.values.get(_AZURE_KEY)
    if key:
        found["account_key"] = key
    return found


@contextmanager
def _as_os_errors(uri: str) -> Iterator[None]:
    """Convert Arrow's errors to ``OSError``, with the values of secret options masked."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ArrowException) as error:
        text = str(error)
        for name, value in _OPTIONS.values.items():
            if value and (name.endswith(_SECRET_ENDINGS) or name.startswith(_AZURE_KEY)):
                text = text.replace(value, "***")
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise type(error)(error.errno, text, uri) from None
        raise OSError(text) from None
