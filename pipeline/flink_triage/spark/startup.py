"""Starts a Spark session for the size of the inputs, and lists the inputs in the meantime."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from flink_triage.local import Options, pack_of, with_layouts
from flink_triage.logs.inputs.files import Listing, list_inputs, nothing_to_read, root_of
from flink_triage.logs.inputs.storage import is_uri
from flink_triage.spark.runtime.session import get_session


def session_and_listing(
    inputs: Sequence[str],
    options: Options,
    *,
    master: str | None = None,
    remote: str | None = None,
    verbose: bool = False,
    warehouse: str | None = None,
) -> tuple[SparkSession, Listing | None]:
    """The session and the listing for `pipeline.run`; the listing is ``None`` if an input is a URI.

    A JVM takes seconds to start; modules and signatures are loaded and inputs are listed in the
    meantime. Missing signature directories (``SignaturePackError``), an invalid ``layouts.yaml``
    (``UsageError``) and, unless an input is a URI, missing or empty inputs (``UsageError``) are
    reported before the session is started. Also raises the errors of `get_session`.
    """
    size_bytes = _size(inputs)
    if options.signature_directories:
        pack_of(with_layouts(options))
    with ThreadPoolExecutor(1) as beside:
        listing = beside.submit(_read_ahead, inputs, options)
        session = get_session(
            master, remote, verbose=verbose, size_bytes=size_bytes, warehouse=warehouse
        )
        return session, listing.result()


def _read_ahead(inputs: Sequence[str], options: Options) -> Listing | None:
    """Load modules and signatures, which are cached; list the inputs unless one is a URI."""
    from flink_triage.spark import pipeline  # noqa: F401
    from flink_triage.spark.query import read_result  # noqa: F401

    options = with_layouts(options)
    pack_of(options)
    # Options of object stores come from the session.
    return None if any(map(is_uri, inputs)) else list_inputs(inputs, options.settings)


def _size(inputs: Sequence[str]) -> int | None:
    """The total size of the files in the inputs, or ``None`` if an input is a URI.

    Raises ``UsageError`` if an input is missing, or if there are neither files nor unreadable
    folders.
    """
    if any(map(is_uri, inputs)):
        # Listing an object store twice is expensive.
        return None
    refused: list[OSError] = []
    files = [file for path in inputs for file in files_below(root_of(path), refused.append)]
    if not (files or refused):
        raise nothing_to_read(inputs)
    return bytes_of(files)


def bytes_of(files: Iterable[str]) -> int:
    """Total size; a path that is not a regular file or cannot be examined counts as 0."""
    return sum(map(_bytes_of_one, files))


def _bytes_of_one(path: str) -> int:
    try:
        info = os.stat(path)
    except OSError:
        return 0
    return info.st_size if stat.S_ISREG(info.st_mode) else 0


def files_below(root: str, refuse: Callable[[OSError], None] = lambda error: None) -> Iterator[str]:
    """The files below a folder; the root itself if it is not a folder."""
    if not os.path.isdir(root):
        yield root
    for folder, _, names in os.walk(root, onerror=refuse):
        yield from (os.path.join(folder, name) for name in names)
