"""The fast scan finds every literal, and the exact check has no false positives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from flink_triage.logs.lifecycle import LITERALS
from flink_triage.logs.text.block_literals import PlainFinder, finder_of, fragments_of

_SOUGHT = (
    *LITERALS,
    "Bad table magic number",
    "magic",
    "Could not flush",
    "\u00fcber",
    "a|b",
    "aa",
)
_TEXTS = st.lists(
    st.one_of(st.sampled_from(_SOUGHT), st.text("ab| Cxn\u00fc\n", max_size=8)), max_size=12
).map("".join)


def test_every_literal_holds_a_fragment() -> None:
    fragments = fragments_of(_SOUGHT)
    assert [text for text in _SOUGHT if not any(f in text for f in fragments)] == []
    assert len(fragments) < len(_SOUGHT)


@settings(max_examples=60, deadline=None)
@given(text=_TEXTS, base=st.integers(0, 10))
def test_suspects_lie_inside_or_at_the_end_of_every_literal(text: str, base: int) -> None:
    data = text.encode()
    suspects: list[int] = []
    finder_of(_SOUGHT).suspects(data, base, suspects)
    for literal in (one.encode() for one in _SOUGHT):
        start = data.find(literal)
        while start >= 0:
            inside = range(base + start + 1, base + start + len(literal) + 1)
            assert any(place in inside for place in suspects)
            start = data.find(literal, start + 1)


@settings(max_examples=60, deadline=None)
@given(text=_TEXTS)
def test_contains_is_exact(text: str) -> None:
    data = text.encode()
    expected = any(literal in text for literal in _SOUGHT)
    assert finder_of(_SOUGHT).contains(data) is expected
    assert PlainFinder(_SOUGHT).contains(data) is expected


def test_without_literals_nothing_is_found() -> None:
    suspects: list[int] = []
    finder = finder_of(("",))
    finder.suspects(b"anything", 0, suspects)
    assert (suspects, finder.contains(b"anything")) == ([], False)
