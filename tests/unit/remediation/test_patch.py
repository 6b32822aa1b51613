from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.errors import UsageError
from flink_triage.model import Action, ConfigChange, Scope
from flink_triage.remediation import PatchForm, default_form, render_patch

KEY = "execution.checkpointing.timeout"


def _change(
    value: str,
    key: str = KEY,
    action: Action = "set",
    scope: Scope = "cluster",
    current: str | None = None,
) -> ConfigChange:
    return ConfigChange(key, value, action, "because", scope, current=current)


@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("1.13.6", "flink-conf.yaml"),
        ("1.18.1", "flink-conf.yaml"),
        ("1.19.0", "config.yaml"),
        ("2.3.0", "config.yaml"),
        ("9.9", "config.yaml"),
        (None, "config.yaml"),
    ],
)
def test_a_version_has_its_own_file(version: str | None, form: PatchForm) -> None:
    assert default_form(version) == form


def test_flink_conf_is_flat_and_shows_current_values() -> None:
    default = replace(_change("4", "c.d", "raise", current="2"), current_source="default")
    changes = [_change("20 min", current="10 min"), _change("3", "a.b", "raise"), default]
    assert render_patch(changes, "1.16.0", "flink-conf.yaml") == (
        "execution.checkpointing.timeout: 20 min   # now 10 min\na.b: 3\nc.d: 4   # default 2\n"
    )


def test_a_deployment_patch_is_a_merge_patch_of_strings() -> None:
    changes = [_change("true", "a.b"), _change("", "c.d", "remove", current="x"), _change("3")]
    patch: Any = yaml.safe_load(render_patch(changes, "1.16.0", "FlinkDeployment"))
    assert patch == {"spec": {"flinkConfiguration": {"a.b": "true", "c.d": None, KEY: "3"}}}


VALUES = [
    ("a duration", "10 min", "10 min"),
    ("a number", "3", 3),
    ("a negative number", "-1", -1),
    ("a decimal", "0.4", 0.4),
    ("a switch", "true", True),
    ("a decimal that Java would print otherwise", "0.00001", "0.00001"),
    ("a version keeps its zero", "1.20", "1.20"),
    ("YAML's other switches", "on", "on"),
    ("octal", "010", "010"),
    ("a base-60 number", "1:30", "1:30"),
    ("null", "null", "null"),
    ("a colon", "a: b", "a: b"),
    ("a comment sign", "a #b", "a #b"),
    ("a star", "*", "*"),
    ("quotes", 'it\'s "x"', 'it\'s "x"'),
    ("a list", "[a, b]", ["a", "b"]),
    ("no list", "[a", "[a"),
    ("Java options", "-Da=b -XX:+UseG1GC", "-Da=b -XX:+UseG1GC"),
    ("a path", "s3://bucket/path", "s3://bucket/path"),
    ("a list with semicolons", "s3;abfs", "s3;abfs"),
    ("an empty value", "", ""),
    ("a date", "2020-01-01", "2020-01-01"),
    ("a date that does not exist", "2026-99-99", "2026-99-99"),
    ("brackets without end", "[" * 300 + "]" * 300, "[" * 300 + "]" * 300),
    ("a list with an alias", "[&a x, *a]", "[&a x, *a]"),
    ("a line break cannot add a key", "a\nb: c", "a b: c"),
]


@pytest.mark.parametrize(
    ("value", "loaded"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES]
)
def test_config_yaml_holds_the_value_that_was_meant(value: str, loaded: object) -> None:
    text = render_patch([_change(value, current="old # value: x")], "2.1.0", "config.yaml")
    assert yaml.safe_load(text) == {KEY: loaded}


@given(st.text(max_size=60), st.sampled_from(["config.yaml", "FlinkDeployment"]))
def test_no_value_breaks_out_of_its_line(value: str, form: PatchForm) -> None:
    text = render_patch([_change("1", "a.b"), _change(value), _change("2", "c.d")], "2.1.0", form)
    loaded: Any = yaml.safe_load(text)
    options = loaded["spec"]["flinkConfiguration"] if form == "FlinkDeployment" else loaded
    assert set(options) - {KEY} == {"a.b", "c.d"}
    assert (str(options["a.b"]), str(options["c.d"])) == ("1", "2")


COMMENTS = [
    ("already set", _change("3", "a.b", "already-set", current="3"), "# a.b: 3   # already set"),
    ("removed", _change("", "a.b", "remove", current="x"), "# remove a.b   # now x"),
    ("for the reader to choose", _change("<unique>", "a.b"), "# choose a value: a.b: <unique>"),
    ("a value that the file cannot hold", _change("x#y", "a.b"),
     "# flink-conf.yaml cannot contain this value, pass it with -D: a.b=x#y"),
    ("a connector's", _change("all", "properties.acks", scope="connector"),
     "# connector, not in this file: properties.acks = all   (because)"),
    ("a platform's", _change("", "yarn.x", "remove", "platform"),
     "# platform, not in this file: remove yarn.x   (because)"),
    ("code", _change("uid()", "operators", scope="code"),
     "# code, not in this file: operators = uid()   (because)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line"), [case[1:] for case in COMMENTS], ids=[case[0] for case in COMMENTS]
)
def test_changes_outside_the_file_are_comments(change: ConfigChange, line: str) -> None:
    assert render_patch([change], "1.16.0", "flink-conf.yaml") == line + "\n"


@pytest.mark.parametrize("form", ["config.yaml", "FlinkDeployment"])
def test_comments_alone_are_no_patch(form: PatchForm) -> None:
    changes = [_change("<unique>"), _change("1", "x", scope="platform")]
    assert yaml.safe_load(render_patch(changes, "2.1.0", form)) is None


@pytest.mark.parametrize(
    ("version", "form", "words"),
    [
        ("1.16.0", "config.yaml", "does not read config.yaml"),
        ("2.1.0", "flink-conf.yaml", "does not read flink-conf.yaml"),
        (None, "config.yaml", "version is unknown"),
    ],
)
def test_file_that_the_version_does_not_read_starts_with_a_comment(
    version: str | None, form: PatchForm, words: str
) -> None:
    first, _, rest = render_patch([_change("1 h")], version, form).partition("\n")
    assert first.startswith("#")
    assert words in first
    assert rest == f"{KEY}: 1 h\n"


@pytest.mark.parametrize("version", ["1.19.1", "1.20.0"])
@pytest.mark.parametrize("form", ["flink-conf.yaml", "config.yaml"])
def test_1_19_and_1_20_read_both_files(version: str, form: PatchForm) -> None:
    assert render_patch([_change("1 h")], version, form) == f"{KEY}: 1 h\n"


def test_secrets_inside_values_do_not_reach_the_patch() -> None:
    changes = [
        _change("-Dssl.password=hunter2", "env.java.opts.all", current="-Dtoken=hunter2"),
        _change("hunter2", "sasl.password", scope="connector"),
    ]
    for form in ("flink-conf.yaml", "config.yaml", "FlinkDeployment"):
        assert "hunter2" not in render_patch(changes, "2.1.0", form)


def test_patch_without_changes_is_empty() -> None:
    assert render_patch([], "2.1.0") == ""


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(UsageError, match=r'"helm" is not one of flink-conf\.yaml'):
        render_patch([], "2.1.0", "helm")  # type: ignore[arg-type]
