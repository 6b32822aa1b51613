from __future__ import annotations

from dataclasses import replace

import pytest

from flink_triage.model import ConfigChange, Remediation, TriedFix
from flink_triage.remediation import render_patch, resolve
from flink_triage.signatures.signature import ComputedValue, ConfigSpec, RemediationSpec, When

TOLERABLE = "execution.checkpointing.tolerable-failed-checkpoints"
RETAINED = "execution.checkpointing.num-retained"
OLD_RETAINED = "state.checkpoints.num-retained"
TIMEOUT = "execution.checkpointing.timeout"
LOCAL = "execution.state-recovery.from-local"
OTHER = {"parallelism.default": "2"}  # a configuration was read, but contains none of the keys


def _resolved(
    *entries: ConfigSpec,
    version: str | None = "1.16.0",
    effective: dict[str, str] | None = None,
    captures: dict[str, str] | None = None,
) -> Remediation:
    return resolve(
        RemediationSpec("s", config=entries),
        flink_version=version,
        effective=OTHER if effective is None else effective,
        captures=captures or {},
    )


def _only(remediation: Remediation) -> ConfigChange:
    (change,) = remediation.config
    return change


CHANGES = [
    ("a default is raised", ConfigSpec(TOLERABLE, "3", "raise", "One failure is no reason."),
     "1.16.0", OTHER,
     ConfigChange(TOLERABLE, "3", "raise",
                  f"{TOLERABLE} is 0 (default), raise to 3. One failure is no reason",
                  current="0", current_source="default")),
    ("what runs is enough", ConfigSpec(TOLERABLE, "3", "raise"), "1.16.0", {TOLERABLE: "3"},
     ConfigChange(TOLERABLE, "3", "already-set", f"{TOLERABLE} is already 3: look elsewhere",
                  current="3", current_source="log")),
    ("what runs is more than enough", ConfigSpec(TOLERABLE, "3", "raise"), "1.16.0",
     {TOLERABLE: "10"},
     ConfigChange(TOLERABLE, "3", "already-set", f"{TOLERABLE} is already 10: look elsewhere",
                  current="10", current_source="log")),
    ("lower is satisfied from below", ConfigSpec(TIMEOUT, "10 min", "lower"), "1.16.0",
     {TIMEOUT: "300 s"},
     ConfigChange(TIMEOUT, "10 min", "already-set", f"{TIMEOUT} is already 300 s: look elsewhere",
                  current="300 s", current_source="log")),
    ("lower is needed from above", ConfigSpec(TIMEOUT, "10 min", "lower"), "1.16.0",
     {TIMEOUT: "1 h"},
     ConfigChange(TIMEOUT, "10 min", "lower", f"{TIMEOUT} is 1 h, lower to 10 min",
                  current="1 h", current_source="log")),
    ("600 s is 10 min", ConfigSpec(TIMEOUT, "10 min"), "1.16.0", {TIMEOUT: "600 s"},
     ConfigChange(TIMEOUT, "10 min", "already-set", f"{TIMEOUT} is already 600 s: look elsewhere",
                  current="600 s", current_source="log")),
    ("the key of an old line", ConfigSpec(RETAINED, "3", "raise"), "1.16.0", OTHER,
     ConfigChange(OLD_RETAINED, "3", "raise", f"{OLD_RETAINED} is 1 (default), raise to 3",
                  current="1", current_source="default")),
    ("an old name in a new line", ConfigSpec(RETAINED, "3", "raise"), "2.1.0",
     {OLD_RETAINED: "2"},
     ConfigChange(RETAINED, "3", "raise",
                  f"{RETAINED} is 2, raise to 3. "
                  f"The configuration sets this option with its old key {OLD_RETAINED}",
                  current="2", current_source="log")),
    ("an old name satisfies", ConfigSpec(LOCAL, "true"), "2.1.0",
     {"state.backend.local-recovery": "TRUE"},
     ConfigChange(LOCAL, "true", "already-set", f"{LOCAL} is already TRUE: look elsewhere",
                  current="TRUE", current_source="log")),
    ("a duration in a line that counts milliseconds", ConfigSpec("heartbeat.timeout", "2 min",
                                                                 "raise"), "1.16.0", OTHER,
     ConfigChange("heartbeat.timeout", "120000", "raise",
                  "heartbeat.timeout is 50000 (50 s, default), raise to 120000 (2 min)",
                  current="50000", current_source="default")),
    ("a value without default", ConfigSpec("state.checkpoints.dir", "s3://b/c"), "1.16.0", OTHER,
     ConfigChange("state.checkpoints.dir", "s3://b/c", "set",
                  "state.checkpoints.dir is not set, set to s3://b/c")),
    ("a value for the reader to choose", ConfigSpec("state.checkpoints.dir", "<durable>"),
     "1.16.0", {"state.checkpoints.dir": "file:///tmp"},
     ConfigChange("state.checkpoints.dir", "<durable>", "set",
                  "state.checkpoints.dir is file:///tmp, set to <durable>",
                  current="file:///tmp", current_source="log")),
    ("a value that cannot be read is no reason to stop", ConfigSpec(TIMEOUT, "10 min", "raise"),
     "1.16.0", {TIMEOUT: "soon"},
     ConfigChange(TIMEOUT, "10 min", "raise", f"{TIMEOUT} is soon, raise to 10 min",
                  current="soon", current_source="log")),
    ("a connector's key is passed on", ConfigSpec("properties.acks", "all", "set", "Safe.",
                                                  "connector"), "1.16.0", OTHER,
     ConfigChange("properties.acks", "all", "set", "Safe.", "connector")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "version", "effective", "change"),
    [case[1:] for case in CHANGES],
    ids=[case[0] for case in CHANGES],
)
def test_an_entry_becomes_a_change_against_what_runs(
    entry: ConfigSpec, version: str, effective: dict[str, str], change: ConfigChange
) -> None:
    assert _only(_resolved(entry, version=version, effective=effective)) == change


COMPUTED = [
    ("twice what runs", ComputedValue(2, "20 min", "2 h"), {TIMEOUT: "30 min"}, "1 h"),
    ("at least", ComputedValue(2, "20 min", "1 h"), {TIMEOUT: "1 min"}, "20 min"),
    ("at most", ComputedValue(2, None, "1 h"), {TIMEOUT: "50 min"}, "1 h"),
    ("twice the default", ComputedValue(2), OTHER, "20 min"),
    ("a bare number of milliseconds", ComputedValue(2), {TIMEOUT: "600000"}, "20 min"),
    ("what cannot be read leaves the bound", ComputedValue(2, "20 min"), {TIMEOUT: "x"}, "20 min"),
    ("what cannot be read without bound is the reader's", ComputedValue(1.5), {TIMEOUT: "x"},
     "<1.5 times the current value>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "effective", "text"), [case[1:] for case in COMPUTED], ids=[c[0] for c in COMPUTED]
)
def test_a_computed_value_starts_from_what_runs(
    value: ComputedValue, effective: dict[str, str], text: str
) -> None:
    change = _only(_resolved(ConfigSpec(TIMEOUT, value, "raise"), effective=effective))
    assert (change.value, change.action) == (text, "raise")


def test_value_is_never_rounded_below_the_logged_one() -> None:
    value = ComputedValue(1.0, stated=("waited_seconds",))
    entry = ConfigSpec(TIMEOUT, value, "raise")
    change = _only(_resolved(entry, effective={}, captures={"waited_seconds": "620"}))
    assert change.value == "11 min"


def test_bound_is_not_a_value_if_the_current_one_is_unknown() -> None:
    size = ConfigSpec("taskmanager.memory.process.size", ComputedValue(1.25, "1728 mb"), "raise")
    unread = _only(_resolved(size, effective={}))
    assert unread.value == "<1.25 times the current value, at least 1728 mb>"
    unset = _only(_resolved(size, effective=OTHER))
    assert unset.value == "1728 mb"


def test_a_computed_value_that_its_bound_keeps_below_what_runs_is_already_set() -> None:
    entry = ConfigSpec(TIMEOUT, ComputedValue(2, None, "1 h"), "raise")
    assert _only(_resolved(entry, effective={TIMEOUT: "2 h"})).action == "already-set"


@pytest.mark.parametrize(
    ("key", "effective", "value"),
    [
        (
            "taskmanager.memory.process.size",
            {"taskmanager.memory.process.size": "1728m"},
            "2592 mb",
        ),
        ("taskmanager.memory.managed.fraction", OTHER, "0.6"),
        ("taskmanager.numberOfTaskSlots", OTHER, "2"),
        ("akka.framesize", OTHER, "15728640b"),
        ("task.cancellation.timeout", OTHER, "270000"),
    ],
)
def test_a_computed_value_is_in_the_unit_of_its_option(
    key: str, effective: dict[str, str], value: str
) -> None:
    entry = ConfigSpec(key, ComputedValue(1.5), "raise")
    assert _only(_resolved(entry, effective=effective)).value == value


CONDITIONS = [
    ("the line is in the range", When(">=1.15,<2.0"), True),
    ("the line is not in the range", When(">=1.17"), False),
    ("an option has the value", When(options={"state.backend.type": "rocksdb"}), True),
    ("an option has another value", When(options={"state.backend.type": "hashmap"}), False),
    ("a default answers", When(options={"execution.checkpointing.unaligned.enabled": "false"}),
     True),
    ("values are compared parsed", When(options={TIMEOUT: "10 min"}), True),
    ("an option is unset", When(options={"state.checkpoints.dir": "(none)"}), True),
    ("an option is set to anything", When(options={TIMEOUT: ".+"}), True),
    ("an option is not set to anything", When(options={"state.checkpoints.dir": ".+"}), False),
    ("a regex is for the whole value", When(options={"state.backend.type": "rock.*|x"}), True),
    ("a regex for a part is not enough", When(options={"state.backend.type": "rock|sdb"}), False),
    ("a capture matches", When(captures={"path": "^file:"}), True),
    ("a capture does not match", When(captures={"path": "^s3:"}), False),
    ("a capture is missing", When(captures={"bucket": "."}), False),
    ("a capture is missing, as it should be", When(captures={"bucket": "^$"}), True),
    ("a capture is there that should be missing", When(captures={"path": "^$"}), False),
    ("every part must hold", When(">=1.15", {"state.backend.type": "rocksdb"}, {"path": "x"}),
     False),
    ("a hostile regex does not hold", When(captures={"long": "^(a+)+$"}), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("when", "is_offered"),
    [case[1:] for case in CONDITIONS],
    ids=[case[0] for case in CONDITIONS],
)
def test_an_entry_is_offered_only_when_its_condition_holds(when: When, is_offered: bool) -> None:
    remediation = _resolved(
        ConfigSpec(TOLERABLE, "3", when=when),
        effective={"state.backend": "rocksdb", TIMEOUT: "600 s"},
        captures={"path": "file:/mnt", "long": "a" * 5000 + "b"},
    )
    assert bool(remediation.config) is is_offered


UNCHECKED = [
    ("the version is unknown", When(">=1.15,<2.0"), None, OTHER,
     "only for Flink >=1.15 and <2.0"),
    ("the patch release is unknown", When(">=1.16.2"), "1.16", OTHER,
     "only for Flink >=1.16.2"),
    ("no configuration was read", When(options={"state.backend.type": "rocksdb"}), "1.16.0", {},
     "only if state.backend.type is rocksdb"),
    ("a regex with values", When(options={"high-availability.type": "(?i)yarn|.*HaFactory"}),
     "1.17.0", {}, "only if high-availability.type is yarn or HaFactory"),
    ("any other regex", When(options={"state.backend.type": "(a|b)c+"}), "1.16.0", {},
     'only if state.backend.type matches "(a|b)c+"'),
    ("no configuration was read for a regex", When(options={TIMEOUT: ".+"}), "1.16.0", {},
     f"only if {TIMEOUT} is set"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("when", "version", "effective", "words"),
    [case[1:] for case in UNCHECKED],
    ids=[case[0] for case in UNCHECKED],
)
def test_unverifiable_condition_is_stated_as_text(
    when: When, version: str | None, effective: dict[str, str], words: str
) -> None:
    entry = ConfigSpec(TOLERABLE, "3", "raise", when=when)
    assert words in _only(_resolved(entry, version=version, effective=effective)).reason


def test_entries_that_give_the_same_change_are_merged() -> None:
    by_name = ConfigSpec(RETAINED, "3", "raise", when=When(captures={"option": "state.*"}))
    by_process = ConfigSpec(RETAINED, "3", "raise", when=When(captures={"process": "taskmanager"}))
    captures = {"option": OLD_RETAINED, "process": "taskmanager"}
    assert len(_resolved(by_name, by_process, captures=captures).config) == 1
    assert len(_resolved(by_name, by_process, captures={"process": "taskmanager"}).config) == 1
    assert _resolved(by_name, by_process, captures={"process": "jobmanager"}).config == ()


NOTES = [
    ("too old", "process.taskmanager.working-dir", "1.14.3",
     "process.taskmanager.working-dir requires Flink 1.15 or later, but this is Flink 1.14.3."),
    ("too new", "execution.checkpointing.force", "2.1.0",
     "execution.checkpointing.force exists only up to Flink 1.20, but this is Flink 2.1.0."),
    ("never there", "no.such.key", "2.1.0",
     "no.such.key is omitted: no known Flink line has this option."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "version", "note"), [case[1:] for case in NOTES], ids=[case[0] for case in NOTES]
)
def test_option_missing_from_the_release_line_becomes_a_step(
    key: str, version: str, note: str
) -> None:
    remediation = _resolved(ConfigSpec(key, "x"), version=version)
    assert (remediation.config, remediation.steps) == ((), (note,))


def test_unknown_version_uses_the_newest_key_and_mentions_the_older() -> None:
    change = _only(_resolved(ConfigSpec(RETAINED, "3", "raise"), version=None, effective={}))
    assert change.key == RETAINED
    assert f"In Flink 1.13 to 1.19 the key is {OLD_RETAINED}" in change.reason


def test_version_newer_than_known_adds_a_step() -> None:
    remediation = _resolved(ConfigSpec(RETAINED, "3"), version="3.1.0")
    assert "Flink 3.1 is newer" in remediation.steps[-1]


def test_default_is_not_assumed_without_a_configuration() -> None:
    entry = ConfigSpec("execution.checkpointing.unaligned.enabled", "false")
    assert _only(_resolved(entry, effective={})).action == "set"
    assert _only(_resolved(entry, effective=OTHER)).action == "already-set"


def test_a_default_is_set_back_where_no_configuration_was_read() -> None:
    entry = ConfigSpec("execution.checkpointing.unaligned.enabled", "false")
    assert _only(_resolved(entry, effective={})).reason == (
        "execution.checkpointing.unaligned is false by default; set it back if your configuration"
        " changes it"
    )


def test_a_default_in_a_different_unit_is_the_same_value() -> None:
    reason = _only(_resolved(ConfigSpec(TIMEOUT, "600 s"), effective={})).reason
    assert reason.startswith(f"{TIMEOUT} is 600 s by default; set it back")


def test_captures_fill_every_text_and_are_never_evaluated() -> None:
    spec = RemediationSpec(
        "Free {path}",
        ("look at {path}, not {other}, {path.x} or {0}",),
        (ConfigSpec("io.tmp.dirs", "{path}/tmp", reason="{path} is full."),),
        verify="df {path}",
        commonly_tried=(TriedFix("delete {path}", "loses {path}"),),
        references=("FLINK-1",),
        trace_step="read the cause of {path}",
    )
    path = "/mnt/a\n{evil}" + "x" * 400
    result = resolve(spec, flink_version="2.1.0", effective=OTHER, captures={"path": path})
    shown = ("/mnt/a {evil}" + "x" * 400)[:300] + "..."
    assert result.summary == f"Free {shown}"
    assert result.steps == (
        f"read the cause of {shown}",
        f"look at {shown}, not {{other}}, {{path.x}} or {{0}}",
    )
    assert result.verify == f"df {shown}"
    assert result.commonly_tried == (TriedFix(f"delete {shown}", f"loses {shown}"),)
    assert result.references == ("FLINK-1",)
    assert _only(result).value == f"{shown}/tmp"


SECRETS = [
    ("a secret key", "s3.secret-key", "hunter2", {"s3.secret-key": "hunter2"}),
    ("a password inside Java options", "env.java.opts.all", "<yours>",
     {"env.java.opts.all": "-Dssl.password=hunter2 -Xmx1g"}),
    ("a password inside an address", "state.checkpoints.dir", "<yours>",
     {"state.checkpoints.dir": "ftp://me:hunter2@host/x"}),
    ("an already satisfied secret", "security.ssl.rest.key-password", "hunter2",
     {"security.ssl.rest.key-password": "hunter2"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "effective"), [case[1:] for case in SECRETS], ids=[c[0] for c in SECRETS]
)
def test_secrets_are_never_printed(key: str, value: str, effective: dict[str, str]) -> None:
    remediation = _resolved(ConfigSpec(key, value), version="2.1.0", effective=effective)
    assert len(remediation.config) == 1
    assert "hunter2" not in repr(remediation)


def test_a_secret_is_left_to_the_reader_in_the_patch_too() -> None:
    remediation = _resolved(ConfigSpec("s3.secret-key", "hunter2"), version="2.1.0")
    patch = render_patch(remediation.config, "2.1.0", "config.yaml")
    assert patch == "# choose a value: s3.secret-key: <secret>\n"


def test_switch_with_token_in_its_name_is_not_a_secret() -> None:
    entry = ConfigSpec("security.delegation.tokens.enabled", "false")
    assert _only(_resolved(entry, version="2.1.0")).value == "false"


def test_value_hidden_by_flink_does_not_count_as_set() -> None:
    entry = ConfigSpec("security.delegation.tokens.enabled", "false")
    hidden = {"security.delegation.tokens.enabled": "******"}
    assert _only(_resolved(entry, version="2.1.0", effective=hidden)).action == "set"


REMOVALS = [
    ("set in the log", {TIMEOUT: "1 s"}, (TIMEOUT, "1 s")),
    ("not set in a configuration that was read", OTHER, None),
    ("no configuration was read", {}, (TIMEOUT, None)),
]


@pytest.mark.parametrize(
    ("effective", "removed"), [case[1:] for case in REMOVALS], ids=[case[0] for case in REMOVALS]
)
def test_a_removal_is_offered_where_there_may_be_something_to_remove(
    effective: dict[str, str], removed: tuple[str, str | None] | None
) -> None:
    changes = _resolved(ConfigSpec(TIMEOUT, "", "remove"), effective=effective).config
    assert [(change.key, change.current) for change in changes] == ([removed] if removed else [])


def test_a_removal_names_the_key_that_the_configuration_holds() -> None:
    entry = ConfigSpec(RETAINED, "", "remove")
    change = _only(_resolved(entry, version="2.1.0", effective={OLD_RETAINED: "9"}))
    assert change.key == OLD_RETAINED


FRAMESIZE = "pekko.framesize"
BUFFERS = ("(total + required - available) * segment_bytes",)
STATED = [
    ("more than the log states", ConfigSpec(FRAMESIZE, ComputedValue(1.5, stated=("size_bytes",))),
     {"size_bytes": "88310442"}, {}, "133169152b"),
    ("the larger of two statements", ConfigSpec(TIMEOUT, ComputedValue(2, stated=("a_ms", "b_ms"))),
     {"a_ms": "600000", "b_ms": "3600003"}, {}, "2 h"),
    ("what runs counts if it is more", ConfigSpec(TIMEOUT, ComputedValue(2, stated=("a_ms",))),
     {"a_ms": "60000"}, {TIMEOUT: "1 h"}, "2 h"),
    ("an upper bound below what the log states is none",
     ConfigSpec(TIMEOUT, ComputedValue(2, None, "1 h", ("a_ms",))), {"a_ms": "3600000"}, {}, "2 h"),
    ("sums and products", ConfigSpec("taskmanager.memory.network.min",
                                     ComputedValue(2, stated=BUFFERS)),
     {"total": "2048", "required": "4097", "available": "1", "segment_bytes": "32768"}, {},
     "384 mb"),
    ("a capture that is missing leaves the bound", ConfigSpec(TIMEOUT, ComputedValue(
        2, "30 min", None, ("a_ms",))), {}, {}, "30 min"),
    ("a connector's milliseconds", ConfigSpec("delivery.timeout.ms", ComputedValue(
        2, "300000", None, ("elapsed_ms",)), scope="connector"),
     {"elapsed_ms": "900007"}, {}, "1800000"),
    ("a connector's bytes", ConfigSpec("max.request.size", ComputedValue(
        1.5, "10485760", None, ("size_bytes",)), scope="connector"),
     {"size_bytes": "23068921"}, {}, "35651584"),
    ("a connector's starting point", ConfigSpec("max.request.size", ComputedValue(
        1.5, "10485760", None, ("size_bytes",)), scope="connector"), {}, {}, "10485760"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "captures", "effective", "text"), [c[1:] for c in STATED], ids=[c[0] for c in STATED]
)
def test_a_value_is_above_what_the_log_states(
    entry: ConfigSpec, captures: dict[str, str], effective: dict[str, str], text: str
) -> None:
    resolved = _resolved(entry, version="1.20.1", effective=OTHER | effective, captures=captures)
    assert _only(resolved).value == text


AKKA = [
    ("an address of Akka", "at recipient [akka.tcp://flink@tm:6122/user/rpc/x]", "akka.framesize"),
    ("a class of Akka", "akka.pattern.AskTimeoutException: Ask timed out", "akka.framesize"),
    ("Flink's own class", "AkkaRpcException: The method m's result size", "akka.framesize"),
    ("Pekko", "org.apache.pekko.pattern.AskTimeoutException", "pekko.framesize"),
    ("a user's class", "com.acme.notakka.Client", "pekko.framesize"),
]


@pytest.mark.parametrize(("text", "key"), [c[1:] for c in AKKA], ids=[c[0] for c in AKKA])
def test_akka_or_pekko_text_selects_the_key(text: str, key: str) -> None:
    spec = RemediationSpec("s", config=(ConfigSpec(FRAMESIZE, "20971520b", "raise"),))
    resolved = resolve(spec, flink_version=None, effective={}, captures={}, text=text)
    assert _only(resolved).key == key


def test_preventive_option_is_a_step_outside_the_patch() -> None:
    entry = ConfigSpec(RETAINED, "3", "raise", "An older one must exist.", purpose="prevent")
    resolved = _resolved(entry, version="1.20.1")
    assert resolved.config == ()
    assert resolved.steps == (
        f"In addition to the fix: {RETAINED} is 1 (default), raise to 3. An older one must exist.",
    )
    assert _resolved(entry, version="1.20.1", effective={RETAINED: "5"}).steps == ()


def test_a_prevention_outside_flinks_options_keeps_its_reason() -> None:
    entry = ConfigSpec("slot.name", "orders", reason="Loses changes.", scope="connector")
    (step,) = _resolved(replace(entry, purpose="prevent")).steps
    assert step == "In addition to the fix: set slot.name to orders. Loses changes."
