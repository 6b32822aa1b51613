"""A failure or a signature in, the weighted terms by which the two can be compared out.

A term is a word (``w:checksum``), the simple name of an exception class (``c:RocksDBException``) or
a frame of Flink or of a library (``f:RocksDB.open``).  Class names also count by their words, so
that ``S3Exception`` and ``AmazonS3Exception`` have something in common.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from flink_triage.model import StackTrace, Throwable
from flink_triage.traces import extract, mask, mentioned, origin_of

from .samples import event_from_text
from .signature import Alternative, Signature

CLASS, WORD, FRAME = "c:", "w:", "f:"

# How much a term says, by where it stands: class and message name a failure, frames show the way
# there, and prose is about many things.
_CLASS_WEIGHT, _MESSAGE_WEIGHT, _CLASS_WORD_WEIGHT = 2.0, 1.0, 0.5
_FRAME_WEIGHT, _PROSE_WEIGHT = 0.4, 0.4
# What a throwable counts, compared with the one that it wraps.
_NEARNESS = 0.5

# More of a text says nothing new and takes time.
_MAX_CHARS = 16 * 1024
_MAX_MESSAGE_CHARS = 2000
_MAX_THROWABLES = 8
_MAX_FRAMES = 4
# Acronyms stay together (`IO`, `Exception`), and a word keeps a digit that ends it (`S3`).
_WORDS = re.compile(r"[A-Z]{2,}\d?(?![a-z])|[A-Z]?[a-z]+\d?|[A-Z]\d")
_MASKED = re.compile(r"<[a-z]+>")
# Any code throws these: the class names no failure.
_STOCK = re.compile(
    r"java\.(?:text|time|util)\.(?!zip\.|jar\.)"
    r"|java\.lang\.(?:AssertionError|(?!ClassNotFound)\w*Exception)$"
)

Terms = dict[str, float]


def trace_of(message: str, continuation: str | None) -> tuple[str, StackTrace | None]:
    """The message of an event, and its stack trace or the throwables that it mentions."""
    text = continuation[:_MAX_CHARS] if continuation is not None else None
    said, trace = extract(message[:_MAX_CHARS], text)
    return said, trace if trace is not None else mentioned(said)


def terms_of_failure(said: str, trace: StackTrace | None, wrappers: Collection[int] = ()) -> Terms:
    """The terms of a stack trace, of the message where there is none.

    The nearer a throwable stands to the root cause, the more it counts.  Those at the depths in
    ``wrappers`` (0 is the root cause) say only that something failed and do not count.  What stands
    around a root cause of the job's own making says only which way it took.
    """
    if trace is None:
        return _merged(_of_message(said))
    inward = trace.throwables[::-1][:_MAX_THROWABLES]
    told = inward[:1] if is_own(trace.root_cause) else inward
    return _merged(
        (term, weight * _NEARNESS**depth)
        for depth, throwable in enumerate(told)
        if depth not in wrappers
        for term, weight in _of_throwable(throwable)
    )


def terms_of_signature(signature: Signature) -> Terms:
    """The terms of all that a signature file says of its failure."""
    return _merged(_of_signature(signature))


def is_own(throwable: Throwable) -> bool:
    """Whether it is of the job's own making: its class, or the code that threw it."""
    if "." in throwable.type and origin_of(throwable.type) == "user":
        return True
    place = next((frame for frame in throwable.frames if frame.origin != "jdk"), None)
    return place is not None and place.origin == "user"


def simple_name(class_name: str) -> str:
    """``BadBlock`` for ``org.acme.Store$BadBlock``."""
    return class_name.rpartition(".")[2].rpartition("$")[2]


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case; a name in camel case is several."""
    return [word.lower() for word in _WORDS.findall(text) if len(word) > 1]


def _of_signature(signature: Signature) -> Iterator[tuple[str, float]]:
    for alternative in signature.alternatives:
        yield from _of_alternative(alternative)
    for text in (signature.title, signature.cause):
        yield from ((WORD + word, _PROSE_WEIGHT) for word in words_of(text))
    for example in signature.examples.match:
        event = event_from_text(example)
        said, trace = trace_of(event.message, event.continuation)
        yield from terms_of_failure(said, trace).items()


def _of_alternative(alternative: Alternative) -> Iterator[tuple[str, float]]:
    for name in (*alternative.throwables, *alternative.root_causes):
        yield from _of_class(name)
    for literal in alternative.literals:
        yield from ((WORD + word, _MESSAGE_WEIGHT) for word in words_of(literal))


def _of_throwable(throwable: Throwable) -> Iterator[tuple[str, float]]:
    is_stock = _STOCK.match(throwable.type) is not None
    if throwable.type and not is_stock:
        yield from _of_class(throwable.type)
    if not (is_stock and is_own(throwable)):
        yield from _of_message(throwable.message)
    told = [frame for frame in throwable.frames if frame.origin not in ("user", "jdk")]
    for frame in told[:_MAX_FRAMES]:
        yield f"{FRAME}{simple_name(frame.class_name)}.{frame.method}", _FRAME_WEIGHT


def _of_class(name: str) -> Iterator[tuple[str, float]]:
    yield CLASS + simple_name(name), _CLASS_WEIGHT
    yield from ((WORD + word, _CLASS_WORD_WEIGHT) for word in words_of(name))


def _of_message(message: str) -> Iterator[tuple[str, float]]:
    masked = _MASKED.sub(" ", mask(message[:_MAX_MESSAGE_CHARS]))
    yield from ((WORD + word, _MESSAGE_WEIGHT) for word in words_of(masked))


def _merged(pairs: Iterable[tuple[str, float]]) -> Terms:
    """Each term once, with its greatest weight."""
    found: Terms = {}
    for term, weight in pairs:
        if weight > found.get(term, 0.0):
            found[term] = weight
    return found
