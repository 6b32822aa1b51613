"""Matches single events against a pack: conditions, location, depth, and captures."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from signature_builders import SMALL_PACK, chain, event, pack_of, signature

from flink_triage.model import Event, Frame, Match, Process, SkippedSignature, StackTrace, Throwable
from flink_triage.settings import Settings
from flink_triage.signatures import (
    Alternative,
    ConfigSpec,
    Matcher,
    RemediationSpec,
    SignaturePack,
    When,
    build_pack,
    load_pack,
)

ROCKSDB = "org.rocksdb.RocksDBException"
USER = Frame("com.acme.Orders", "map", "Orders.java", 12, origin="user")
FLINK = Frame("org.apache.flink.streaming.Task", "run", "Task.java", 1, origin="flink")
JDK = Frame("java.util.Objects", "requireNonNull", "Objects.java", 1, origin="jdk")


def found(
    pack: SignaturePack,
    message: str = "",
    trace: StackTrace | None = None,
    process: Process | None = None,
    **fields: object,
) -> tuple[Match, ...]:
    return Matcher(pack).match(event(message, **fields), message, trace, process)


TEXT = Alternative(literals=("lost it",))
TYPED = Alternative(scope="throwable", throwables=(ROCKSDB,), literals=("bad file",))
ROOT = Alternative(scope="root-cause", root_causes=(ROCKSDB,), literals=("bad file",))

HOLDS = {
    "a literal in the message": (TEXT, ("we lost it all", None), None),
    "a literal in a throwable that wraps two others": (
        TEXT,
        ("", chain("A: lost it", "B: b", "C: c")),
        2,
    ),
    "a literal in both is taken where it is nearest to the root": (
        TEXT,
        ("lost it", chain("A: lost it", "B: lost it")),
        0,
    ),
    "a throwable in the middle of the chain": (
        TYPED,
        ("", chain("A: a", f"{ROCKSDB}: bad file 7", "C: c")),
        1,
    ),
    "a relocated class": (TYPED, ("", chain(f"com.shop.shaded.{ROCKSDB}: bad file")), 0),
    "a class without its package": (TYPED, ("", chain("RocksDBException: bad file")), 0),
    "a root cause": (ROOT, ("", chain("A: a", f"{ROCKSDB}: bad file")), 0),
    "a class that the last throwable's message begins with": (
        TYPED,
        ("", chain("A: a", f"x.FutureException: y.CallException: {ROCKSDB}: bad file")),
        0,
    ),
    "a root cause that was cut off behind what wraps it": (
        ROOT,
        ("", chain("A: a", f"x.FutureException: {ROCKSDB}: bad file")),
        0,
    ),
    "two literals in two throwables": (
        Alternative(literals=("lost it", "for ever")),
        ("", chain("A: lost it", "B: for ever")),
        0,
    ),
    "the text anywhere, the class anywhere": (
        Alternative(scope="event", throwables=(ROCKSDB,), literals=("lost it",)),
        ("we lost it", chain("A: a", f"{ROCKSDB}: x", "C: c")),
        1,
    ),
    "a literal in the header's message only": (
        Alternative(scope="message", literals=("lost it",)),
        ("lost it", chain("A: a")),
        None,
    ),
    "a literal in a frame": (
        Alternative(scope="frame", literals=("Orders.map",)),
        ("", chain("A: a", "B: b", frames=(USER,))),
        0,
    ),
    "lines after the header that are no trace": (
        TEXT,
        ("head", None, {"continuation": "tail\nwe lost it"}),
        None,
    ),
}


@pytest.mark.parametrize(("alternative", "given", "depth"), HOLDS.values(), ids=HOLDS.keys())
def test_alternatives_that_hold(
    alternative: Alternative, given: tuple[object, ...], depth: int | None
) -> None:
    message, trace, *fields = given
    matches = found(pack_of(alternative), message, trace, **(fields[0] if fields else {}))  # type: ignore[arg-type]
    assert [match.depth_from_root for match in matches] == [depth]


FAILS = {
    "other capitals": (TEXT, ("we LOST IT", None)),
    "one of two literals": (Alternative(literals=("lost it", "for ever")), ("lost it", None)),
    "the text in another throwable": (TYPED, ("bad file", chain("A: bad file", f"{ROCKSDB}: x"))),
    "a class named at the head of a message whose cause is printed": (
        TYPED,
        ("", chain(f"x.FutureException: {ROCKSDB}: bad file", "B: b")),
    ),
    "a class named in the middle of a message": (
        TYPED,
        ("", chain(f"x.FutureException: see {ROCKSDB}: bad file")),
    ),
    "a class that only ends alike": (TYPED, ("", chain("NotRocksDBException: bad file"))),
    "a root cause that was wrapped the other way": (
        ROOT,
        ("", chain(f"{ROCKSDB}: bad file", "B: b")),
    ),
    "the text in what wraps the root cause": (
        ROOT,
        ("", chain("A: bad file", f"{ROCKSDB}: x")),
    ),
    "no trace where one is needed": (TYPED, (f"{ROCKSDB}: bad file", None)),
    "the text only in the trace": (
        Alternative(scope="message", literals=("lost it",)),
        ("", chain("A: lost it")),
    ),
    "a regex that finds nothing": (
        Alternative(literals=("lost it",), regex=r"lost it \d"),
        ("lost it", None),
    ),
    "a frame that is not there": (
        Alternative(literals=("lost it",), frames=("com.acme.Bills.map",)),
        ("", chain("A: lost it", frames=(USER,))),
    ),
    "frames are no text of the event": (
        Alternative(literals=("Orders",)),
        ("", chain("A: a", frames=(USER,))),
    ),
    "another level": (Alternative(literals=("lost it",), levels=("WARN",)), ("lost it", None)),
}


@pytest.mark.parametrize(("alternative", "given"), FAILS.values(), ids=FAILS.keys())
def test_alternatives_that_do_not_hold(
    alternative: Alternative, given: tuple[str, StackTrace | None]
) -> None:
    assert found(pack_of(alternative), *given, level="INFO") == ()


UNSTATED = {
    "a level": (Alternative(literals=("lost it",), levels=("ERROR",)), {}, None, True),
    "a logger": (Alternative(literals=("lost it",), loggers=("org.x.Y",)), {}, None, True),
    "a process": (Alternative(literals=("lost it",), process="jobmanager"), {}, None, True),
    "another process": (
        Alternative(literals=("lost it",), process="jobmanager"),
        {},
        "taskmanager",
        False,
    ),
    "another logger": (
        Alternative(literals=("lost it",), loggers=("org.x.Y",)),
        {"logger": "org.x.Z"},
        None,
        False,
    ),
    "FATAL is an ERROR": (
        Alternative(literals=("lost it",), levels=("ERROR",)),
        {"level": "FATAL"},
        None,
        True,
    ),
}


@pytest.mark.parametrize(
    ("alternative", "fields", "process", "holds"), UNSTATED.values(), ids=UNSTATED.keys()
)
def test_missing_event_fields_do_not_rule_out_a_match(
    alternative: Alternative, fields: dict[str, object], process: Process | None, holds: bool
) -> None:
    assert bool(found(pack_of(alternative), "lost it", None, process, **fields)) is holds


def test_suppressed_throwable_ranks_behind_all_causes() -> None:
    suppressed = (Throwable("S", "lost it", relation="suppressed"),)
    trace = StackTrace((Throwable("A", "a", suppressed=(suppressed,)), Throwable("B", "b")))
    assert [match.depth_from_root for match in found(pack_of(TEXT), "", trace)] == [2]


def test_captures_come_from_named_groups_that_took_part() -> None:
    alternative = Alternative(
        literals=("lost",), regex=r"lost (?P<count>\d+)(?: of (?P<total>\d+))?"
    )
    (match,) = found(pack_of(alternative), "we lost 3 files")
    assert match.captures == {"count": "3"}


@pytest.mark.parametrize(
    ("text", "is_written", "holds"),
    [
        ("We have probably lost the machine m1", True, True),
        ("We have probably lost the machine.", True, True),
        ("We have probably lost the machine.", False, False),
        ("We have probably lost the machine, and more", True, False),
    ],
)
def test_a_pasted_text_may_end_before_the_value(text: str, is_written: bool, holds: bool) -> None:
    alternative = Alternative(
        literals=("probably lost the machine",), regex=r"lost the machine (?P<machine>m\d)"
    )
    written = {"level": None, "logged_at": None, "logger": None}
    fields = written if is_written else {"level": "WARN"}
    trace = chain(f"java.lang.Exception: {text}")
    assert bool(found(pack_of(alternative), "", trace, **fields)) is holds


def test_captures_of_other_alternatives_are_added_to_those_of_the_best() -> None:
    pack = pack_of(
        Alternative(literals=("lost",), regex=r"lost (?P<what>\w+)"),
        Alternative(literals=("at host",), regex=r"at host (?P<host>\w+)"),
    )
    (match,) = found(pack, "at host h1", chain("A: lost files"))
    assert (match.alternative, match.captures) == (0, {"what": "files", "host": "h1"})


def test_capture_nearest_to_the_root_cause_wins() -> None:
    pack = pack_of(
        Alternative(literals=("lost",), regex=r"lost (?P<what>\w+)"),
        Alternative(literals=("missing",), regex=r"missing (?P<what>\w+)"),
    )
    (match,) = found(pack, "missing job", chain("A: lost files"))
    assert match.captures == {"what": "files"}


def test_an_excerpt_is_the_line_as_it_is_written_and_holds_the_match() -> None:
    long = "x" * 900
    (match,) = found(pack_of(TEXT), f"first\n{long} lost it {long}\nlast")
    assert len(match.excerpt) <= 400
    assert "lost it" in match.excerpt
    assert match.excerpt in f"{long} lost it {long}"


def test_all_means_every_alternative_on_one_event() -> None:
    pack = pack_of(TEXT, TYPED, mode="all")
    assert found(pack, "lost it") == ()
    assert found(pack, "", chain(f"{ROCKSDB}: bad file")) == ()
    (match,) = found(pack, "lost it", chain(f"{ROCKSDB}: bad file"))
    assert (match.alternative, match.depth_from_root) == (0, 0)


def test_a_veto_on_the_same_event_wins() -> None:
    pack = pack_of(TEXT, vetoes=(Alternative(literals=("on purpose",)),))
    assert len(found(pack, "lost it")) == 1
    assert found(pack, "lost it", chain("A: on purpose")) == ()


def test_a_sequence_reports_each_alternative_by_itself() -> None:
    pack = pack_of(TEXT, Alternative(literals=("found it",)), mode="sequence")
    assert [m.alternative for m in found(pack, "found it")] == [1]
    assert {m.alternative for m in found(pack, "lost it, found it")} == {0, 1}


def test_user_code_condition_checks_the_first_own_frame() -> None:
    pack = pack_of(Alternative(frame_origin="user"))
    thrown_by_user = chain("A: a", "B: b", frames=(JDK, USER, FLINK))
    thrown_by_flink = chain("A: a", "B: b", frames=(JDK, FLINK, USER))
    assert [m.depth_from_root for m in found(pack, "", thrown_by_user)] == [0]
    assert found(pack, "", thrown_by_flink) == ()
    assert found(pack, "", chain("A: a")) == ()
    assert found(pack, "no trace") == ()


def test_matches_are_ordered_by_generality_depth_and_specificity() -> None:
    pack = build_pack(
        [
            signature("a/generic", alternatives=(Alternative(frame_origin="user"),)),
            signature("b/vague", alternatives=(Alternative(literals=("file",)),)),
            signature("c/far", alternatives=(Alternative(literals=("outer text",)),)),
            signature("d/specific", alternatives=(Alternative(literals=("bad file",)),)),
        ]
    )
    matches = found(pack, "", chain("A: outer text", "B: bad file", frames=(USER,)))
    assert [m.signature for m in matches] == ["d/specific", "b/vague", "c/far", "a/generic"]


@pytest.mark.parametrize(
    ("role", "alternative", "is_left_out"),
    [
        pytest.param("symptom", Alternative(literals=("outer",)), True, id="an answer further out"),
        pytest.param("wrapper", Alternative(literals=("outer",)), False, id="a wrapper"),
        pytest.param("benign", Alternative(literals=("outer",)), False, id="benign"),
        pytest.param("trigger", Alternative(frame_origin="user"), False, id="user code"),
        pytest.param("trigger", Alternative(literals=("other",)), False, id="no other match"),
    ],
)
def test_a_fallback_matches_only_what_no_other_signature_explains(
    role: str, alternative: Alternative, is_left_out: bool
) -> None:
    refused = Alternative(literals=("refused",))
    pack = build_pack(
        [
            signature("a/fallback", alternatives=(refused,), precedence="fallback"),
            signature("b/other", alternatives=(alternative,), role=role),
        ]
    )
    matches = found(pack, "", chain("A: outer text", "B: refused", frames=(USER,)))
    assert ("a/fallback" not in [m.signature for m in matches]) is is_left_out


def test_markdown_escapes_in_prose_are_removed() -> None:
    pack = pack_of(Alternative(literals=("max_allowed_packet",)))
    text = r"the log says: log event entry exceeded max\_allowed\_packet"
    assert len(found(pack, text)) == 1
    assert found(pack, text, level="ERROR") == ()


def test_one_step_of_a_sequence_does_not_explain_an_event() -> None:
    steps = (Alternative(literals=("outer",)), Alternative(literals=("later",)))
    fallback = Alternative(literals=("refused",))
    pack = build_pack(
        [
            signature("a/fallback", alternatives=(fallback,), precedence="fallback"),
            signature("b/sequence", alternatives=steps, mode="sequence"),
        ]
    )
    matches = found(pack, "", chain("A: outer text", "B: refused"))
    assert "a/fallback" in [m.signature for m in matches]


def test_only_head_and_tail_of_a_long_text_are_read() -> None:
    matcher = Matcher(pack_of(TEXT), Settings(max_match_chars=100))
    for text, is_found in (
        ("lost it" + "x" * 200, True),
        ("x" * 200 + "lost it", True),
        ("x" * 200 + "lost it" + "x" * 200, False),
    ):
        assert bool(matcher.match(event(text), text, None, None)) is is_found


def test_literals_are_found_across_alphabets_and_lone_surrogates() -> None:
    pack = pack_of(Alternative(literals=("Größe überschritten",)))
    assert len(found(pack, "\ud83d Größe überschritten \U0001f600")) == 1


EVIL = Alternative(literals=("evil",), regex=r"evil (?:a|aa)+$")
EVIL_TEXT = "evil " + "a" * 60 + "b"


def test_regex_timeout_is_no_match_and_is_reported() -> None:
    settings = Settings(regex_timeout_seconds=0.01)
    matcher = Matcher(build_pack([signature("z/evil", alternatives=(EVIL,))]), settings)
    assert matcher.match(event(EVIL_TEXT), EVIL_TEXT, None, None) == ()
    reason = "a regex was stopped after 0.01 s (timeouts: 1)"
    assert matcher.skipped == (SkippedSignature("z/evil", reason),)


def ticking() -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += 4.0


def test_a_signature_over_its_budget_is_switched_off_and_others_go_on() -> None:
    slow = signature("z/slow", alternatives=(Alternative(literals=("evil",), regex="evil"),))
    clock = ticking()
    matcher = Matcher(build_pack([slow, signature()]), Settings(), lambda: next(clock))

    def ids() -> list[str]:
        matches = matcher.match(event("evil"), "evil, lost it", None, None)
        return [match.signature for match in matches]

    both, alone = ["z/slow", "a/b"], ["a/b"]
    assert [ids() for _ in range(4)] == [both, both, both, alone]
    assert matcher.skipped == (
        SkippedSignature("z/slow", "switched off after its regexes had run for 12.0 s"),
    )


def test_a_matcher_that_was_sent_to_another_process_matches_the_same() -> None:
    matcher = Matcher(load_pack([SMALL_PACK]))
    message = "Exceeded checkpoint tolerable failure threshold."
    before = matcher.match(event(message), message, None, None)
    after = pickle.loads(pickle.dumps(matcher)).match(event(message), message, None, None)
    assert before == after
    assert [match.signature for match in after] == ["checkpoint/threshold-exceeded"]


def test_a_pack_without_signatures_matches_nothing() -> None:
    assert found(build_pack([]), "anything", chain("A: a")) == ()


def test_matching_does_not_modify_the_event() -> None:
    given = Event("f", 0, 1, 1, None, None, None, None, "lost it", "tail")
    Matcher(pack_of(TEXT)).match(given, "lost it", None, None)
    assert given == Event("f", 0, 1, 1, None, None, None, None, "lost it", "tail")


def test_matching_frame_is_captured_if_the_remediation_uses_it() -> None:
    asking = RemediationSpec(
        "x", config=(ConfigSpec("k", "v", when=When(captures={"frame": "acme"})),)
    )
    alternative = Alternative(literals=("lost it",), frames=("org.other.X", "com.acme.Pool"))
    trace = chain("java.io.IOException: lost it", frames=(Frame("com.acme.Pool", "take"),))
    for remediation, captures in (
        (asking, {"frame": "com.acme.Pool"}),
        (RemediationSpec("x"), {}),
    ):
        (match,) = found(pack_of(alternative, remediation=remediation), "failed", trace)
        assert match.captures == captures
