"""Matches that remain after an example and the alternatives for it are removed."""

from __future__ import annotations

from dataclasses import replace

from signature_builders import signature

from flink_triage.signatures import Alternative, Examples, build_pack
from flink_triage.signatures.leave_one_out import leave_out, library_of, render_left_out

MYSQL = "com.mysql.cj.jdbc.RefusedException: lost connection, code 7"
OTHER_MYSQL = "com.mysql.cj.jdbc.RefusedException: lost connection, code 8"
POSTGRES = "org.postgresql.util.RefusedException: lost the server"


def left(*alternatives: Alternative) -> list[tuple[bool, bool]]:
    own = replace(
        signature("a/b"),
        alternatives=alternatives,
        examples=Examples(match=(MYSQL, OTHER_MYSQL, POSTGRES)),
    )
    rows = leave_out(build_pack([own]))
    return [(row.is_named_without_it, row.is_named_without_its_library) for row in rows]


def test_an_alternative_for_one_example_is_left_out_with_it() -> None:
    assert (
        left(
            Alternative(literals=("code 7",)),
            Alternative(literals=("code 8",)),
            Alternative(literals=("lost the server",)),
        )
        == [(False, False)] * 3
    )


def test_an_alternative_that_takes_two_names_one_without_the_other() -> None:
    found = left(Alternative(literals=("lost connection",)), Alternative(literals=("server",)))
    assert found == [(True, False), (True, False), (False, False)]
    assert left(Alternative(literals=("lost",))) == [(True, True)] * 3


def test_all_forms_of_an_error_are_one() -> None:
    forms = [
        Alternative(literals=(text,), error="a: code 7 or 8")
        for text in ("code 7", "code 8", "server")
    ]
    assert left(*forms) == [(True, True)] * 3


def test_the_library_is_that_of_the_root_cause() -> None:
    assert library_of("java.io.IOException: x\nCaused by: " + MYSQL) == "com.mysql.cj"
    assert library_of("2026-11-21 05:48:45,519 WARN  org.apache.kafka.a.B [] - x") == (
        "org.apache.kafka"
    )


def test_the_table_has_a_row_for_all_and_for_each_subsystem() -> None:
    own = replace(
        signature("a/b"),
        alternatives=(Alternative(literals=("lost",)),),
        examples=Examples(match=(MYSQL, POSTGRES, "nothing")),
    )
    text = render_left_out(leave_out(build_pack([own])))
    assert "| **all** | 3 | 2 (67 %) | 2 (67 %) |\n| a | 3 | 2 (67 %) | 2 (67 %) |\n" in text
