"""Extracts the weighted terms of failures and signatures, so that they can be compared.

A term is a word (``w:checksum``) or the simple name of an exception class (``c:RocksDBException``).
The words in a class name are also terms, so that ``S3Exception`` and ``AmazonS3Exception`` have
terms in common.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from flink_triage.model import Observation
from flink_triage.signatures.samples import event_from_text
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.traces import extract, mask, mentioned, origin_of, simple_name

CLASS, WORD = "c:", "w:"

# The weight of a term depends on its source: the class and message identify a failure, but prose is
# less specific.
_CLASS_WEIGHT, _MESSAGE_WEIGHT, _CLASS_WORD_WEIGHT, _PROSE_WEIGHT = 2.0, 1.0, 0.5, 0.4
# The weight of a throwable relative to the throwable that it wraps.
_NEARNESS = 0.5

# Maximum length of the text; more text adds no information, but takes time.
_MAX_CHARS = 2000
_MAX_THROWABLES = 8
# Acronyms are kept together (`IOException` is `IO` and `Exception`), and a word includes a final
# digit (`S3`).
_WORDS = re.compile(r"[A-Z]{2,}\d?(?![a-z])|[A-Z]?[a-z]+\d?|[A-Z]\d")
_MASKED = re.compile(r"<[a-z]+>")
# Exceptions that any code throws for any reason, so that the class does not identify a failure.
_STOCK = re.compile(
    r"java\.(?:text|time|util)\.(?!zip\.|jar\.)"
    r"|java\.lang\.(?:AssertionError|(?!ClassNotFound)\w*Exception)$"
)
# Packages of exceptions that the job's own file and network access may cause.
_OF_JDK = re.compile(r"java\.(?:io|net|nio|util)\.")

Terms = dict[str, float]


def terms_of_failure(observation: Observation, wrappers: Collection[int] = ()) -> Terms:
    """The terms of the root cause of an event, or of its message if there is no stack trace.

    The class of the outermost throwable is added if there are neither ``wrappers`` nor user frames.
    ``wrappers`` are the depths (0 is the root cause) of throwables that only report that an
    operation failed. Empty if the root cause is one of the ``wrappers`` or was cut off, or if the
    job's own code failed.
    """
    root = observation.root_cause_type
    if root is None:
        of_trace = observation.fingerprint is not None
        return {} if of_trace else _of_text(observation.event.message)
    if 0 in wrappers or is_own(observation):
        return {}
    pairs = [*_of_throwable(root, observation.root_cause_message or "")]
    thrown = observation.exception_type
    if thrown is not None and thrown != root and not wrappers and not observation.first_user_frame:
        pairs += ((term, weight * _NEARNESS) for term, weight in _of_throwable(thrown, ""))
    return _merged(pairs)


def terms_of_signature(signature: Signature) -> Terms:
    """The terms of all texts in a signature that describe the failure."""
    return _merged(_of_signature(signature))


def is_own(observation: Observation) -> bool:
    """Whether the job's own code failed, with its own exception class or in its use of the JDK."""
    root = observation.root_cause_type or ""
    if "." in root and origin_of(root) == "user":
        return True
    is_of_jdk = _STOCK.match(root) or _OF_JDK.match(root)
    return is_of_jdk is not None and observation.first_user_frame is not None


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; camel-case names are split."""
    return [word.lower() for word in _WORDS.findall(text) if len(word) > 1]


def _of_signature(signature: Signature) -> Iterator[tuple[str, float]]:
    for alternative in signature.alternatives:
        yield from _of_alternative(alternative)
    for text in (signature.title, signature.cause):
        yield from ((WORD + word, _PROSE_WEIGHT) for word in words_of(text))
    for example in signature.examples.match:
        yield from _of_example(example)


def _of_alternative(alternative: Alternative) -> Iterator[tuple[str, float]]:
    for name in (*alternative.throwables, *alternative.root_causes):
        yield from _of_class(name)
    for literal in alternative.literals:
        yield from ((WORD + word, _MESSAGE_WEIGHT) for word in words_of(literal))


def _of_example(text: str) -> Iterator[tuple[str, float]]:
    event = event_from_text(text)
    message, trace = extract(event.message, event.continuation)
    if trace is None:
        yield from _of_text(message).items()
        return
    for depth, throwable in enumerate(trace.throwables[::-1][:_MAX_THROWABLES]):
        for term, weight in _of_throwable(throwable.type, throwable.message):
            yield term, weight * _NEARNESS**depth


def _of_text(text: str) -> Terms:
    """The terms for the words of a message and the throwables that it mentions."""
    trace = mentioned(text[:_MAX_CHARS])
    names = [throwable.type for throwable in trace.throwables] if trace is not None else []
    return _merged([*(pair for name in names for pair in _of_class(name)), *_of_message(text)])


def _of_throwable(name: str, message: str) -> Iterator[tuple[str, float]]:
    if name and not _STOCK.match(name):
        yield from _of_class(name)
    yield from _of_message(message)


def _of_class(name: str) -> Iterator[tuple[str, float]]:
    yield CLASS + simple_name(name), _CLASS_WEIGHT
    yield from ((WORD + word, _CLASS_WORD_WEIGHT) for word in words_of(name))


def _of_message(message: str) -> Iterator[tuple[str, float]]:
    masked = _MASKED.sub(" ", mask(message[:_MAX_CHARS]))
    yield from ((WORD + word, _MESSAGE_WEIGHT) for word in words_of(masked))


def _merged(pairs: Iterable[tuple[str, float]]) -> Terms:
    """The distinct terms, each with its highest weight."""
    found: Terms = {}
    for term, weight in pairs:
        if weight > found.get(term, 0.0):
            found[term] = weight
    return found
