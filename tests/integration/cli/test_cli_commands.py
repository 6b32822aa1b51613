"""Tests the commands as users and scripts call them: output, streams, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flink_triage.cli import main

LOGS = Path(__file__).resolve().parents[2] / "logs"
FULL_DISK = LOGS / "checkpoint" / "tolerable-threshold-exceeded" / "disk-full-1.16.0" / "logs"
STARTED = (
    "2026-11-21 05:00:00,000 INFO  org.apache.flink.runtime.rpc.pekko.PekkoRpcService [] - Starting"
    " RPC endpoint for org.apache.flink.runtime.dispatcher.StandaloneDispatcher at"
    " pekko://flink/user/rpc/dispatcher_1 .\n"
)
HEALTHY = LOGS / "healthy" / "orders-2.1.1" / "logs"


def test_a_path_alone_is_diagnosed(capsys):
    assert main([str(FULL_DISK)]) == 0
    shown = capsys.readouterr()
    assert "Disk, volume or quota is full" in shown.out
    assert shown.err == ""


def test_the_package_runs_as_a_module():
    """For environments in which the scripts directory is not on the PATH."""
    ended = subprocess.run(
        [sys.executable, "-m", "flink_triage", str(FULL_DISK)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Disk, volume or quota is full" in ended.stdout


def test_standard_output_holds_only_data(capsys):
    assert main(["diagnose", str(FULL_DISK), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["incidents"][0]["diagnoses"][0]["signature"] == "disk/full"


def test_each_format_is_written_to_its_own_file(tmp_path, capsys):
    page, report, data = (tmp_path / name for name in ("a.md", "r.html", "d.json"))
    code = main(
        [
            *("diagnose", str(FULL_DISK), "--report", str(report)),
            *("--format", "markdown", "--output", str(page)),
            *("--format", "json", "--output", str(data)),
        ]
    )
    assert code == 0
    assert "Disk, volume or quota is full" in page.read_text()
    assert json.loads(data.read_text())["schema_version"] == 2
    assert report.read_text().startswith("<!doctype html")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("logs", "flags", "code"),
    [
        pytest.param(FULL_DISK, ["--fail-on", "critical"], 1, id="a critical finding"),
        pytest.param(FULL_DISK, [], 0, id="findings do not change the exit code by default"),
        pytest.param(HEALTHY, ["--fail-on", "info"], 0, id="healthy logs never fail"),
    ],
)
def test_exit_code_depends_on_the_findings(logs, flags, code, capsys):
    assert main(["diagnose", str(logs), *flags]) == code


def test_exit_code_is_the_same_in_every_format(capsys):
    codes = {
        format_: main(["diagnose", str(FULL_DISK), "--format", format_, "--fail-on", "major"])
        for format_ in ("text", "json", "jsonl", "markdown", "html")
    }
    assert set(codes.values()) == {1}


def test_strict_fails_when_something_was_not_read(tmp_path, capsys):
    (tmp_path / "core.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 64)
    (tmp_path / "jobmanager.log").write_text(STARTED)
    assert main(["diagnose", str(tmp_path)]) == 0
    assert main(["diagnose", str(tmp_path), "--strict"]) == 3
    assert "binary" in capsys.readouterr().out


def test_strict_takes_the_other_files_of_a_flink_folder(tmp_path, capsys):
    for name in ("conf/config.yaml", "conf/log4j.properties", "lib/flink-dist-2.1.1.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "log").mkdir()
    (tmp_path / "log/jobmanager.log").write_text(STARTED)
    assert main(["diagnose", str(tmp_path), "--strict"]) == 0
    assert "0 quarantined · 3 ignored" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["diagnose", "/no/such/place"], "/no/such/place", id="missing input"),
        pytest.param(["diagnose", "{empty}"], "nothing to read", id="empty folder"),
        pytest.param(
            ["diagnose", "{logs}", "--since", "soon"], "--since: 'soon'", id="invalid time"
        ),
        pytest.param(
            ["diagnose", "{logs}", "--timezone", "Mars/Olympus"], "Mars", id="unknown time zone"
        ),
        pytest.param(["diagnose", "{logs}", "--group-by", "("], "--group-by", id="invalid regex"),
        pytest.param(
            ["signatures", "show", "rocksdb/bad-table-magick"],
            "bad-table-magic",
            id="misspelled signature id",
        ),
        pytest.param(["run", "--input", "{logs}"], "--warehouse DIR", id="missing warehouse"),
        pytest.param(
            ["diagnose", "{logs}", "--format", "json", "--format", "text"],
            "only one report can be written to standard output",
            id="two formats on standard output",
        ),
    ],
)
def test_wrong_use_is_one_clear_line_and_exit_2(words, message, tmp_path, capsys):
    filled = [w.format(empty=tmp_path, logs=HEALTHY) for w in words]
    assert main(filled) == 2
    error = capsys.readouterr().err
    assert error.startswith("flink-triage: ")
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["run", "--input", "/no/such/place"], "does not exist", id="missing input"),
        pytest.param(["run", "--input", "{empty}"], "nothing to read", id="empty folder"),
        pytest.param(
            ["run", "--input", "{logs}", "--signatures", "{none}"],
            "none:1: directory: is not a directory",
            id="signature directory is not a directory",
        ),
        pytest.param(["run", "--rematch"], "no run has been published", id="nothing to rematch"),
        pytest.param(["report"], "no run has been published", id="nothing to report"),
        pytest.param(["history"], "no run has been published", id="no history"),
        pytest.param(["maintain"], "no run has been published", id="nothing to maintain"),
    ],
)
def test_usage_errors_are_reported_before_a_jvm_starts(
    words, message, tmp_path, capsys, monkeypatch
):
    def start(**asked: object) -> None:
        pytest.fail("a session was asked for")

    pytest.importorskip("pyspark")
    monkeypatch.setattr("flink_triage.spark.runtime.session.get_session", start)
    monkeypatch.setattr("flink_triage.spark.startup.get_session", start)
    (tmp_path / "empty").mkdir()
    places = {"empty": tmp_path / "empty", "none": tmp_path / "none", "logs": HEALTHY}
    filled = [word.format(**places) for word in words]
    assert main([*filled, "--warehouse", str(tmp_path / "tables")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--input", str(HEALTHY)],
        ["run", "--rematch"],
        ["report"],
        ["history"],
        ["compare", "..2026-05-10", "2026-05-10.."],
        ["maintain"],
    ],
    ids=" ".join,
)
def test_without_spark_the_package_to_install_is_named(words, tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("flink_triage.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main([*words, "--warehouse", str(tmp_path)]) == 4
    assert "pip install 'flink-triage[spark]'" in capsys.readouterr().err


def test_a_broken_signature_pack_lists_every_problem(tmp_path, capsys):
    folder = tmp_path / "custom"
    folder.mkdir()
    (folder / "one.yaml").write_text("title: x\nseverity: high\nrole: trigger\n")
    assert main(["signatures", "lint", str(tmp_path)]) == 2
    output = capsys.readouterr().out
    assert "one.yaml:2: severity" in output
    assert "critical" in output


def test_broken_user_file_is_named_and_the_others_are_used(tmp_path, capsys):
    log = tmp_path / "logs" / "taskmanager.log"
    log.parent.mkdir()
    log.write_text(
        "2026-11-21 05:00:00,000 ERROR org.apache.flink.Frob [] - The frobnicator is out of phase\n"
        "org.apache.flink.util.FlinkException: The frobnicator is out of phase by 7\n"
        "\tat org.apache.flink.runtime.frob.Frobnicator.turn(Frobnicator.java:15)\n"
    )
    folder = tmp_path / "pack" / "custom"
    folder.mkdir(parents=True)
    (folder / "good.yaml").write_text(
        "title: Frobnicator is out of phase\nseverity: major\nrole: trigger\n"
        "match: {any: [{literal: frobnicator is out of phase}]}\ncause: It turned.\n"
        "remediation: {summary: Turn it back., risk: live}\n"
    )
    (folder / "bad\x1b[31m.yaml").write_text("title: [")
    (folder / "bad.yaml").write_text("title: x\nseverity: high\n")
    (tmp_path / "pack" / "ignore.yaml").write_text("- signature: disk/ful\n  reason: a slip\n")
    words = ["diagnose", str(log), "--signatures", str(tmp_path / "pack"), "--format", "json"]
    assert main(words) == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["incidents"][0]["diagnoses"][0]["signature"] == "custom/good"
    skipped = {s["signature"] for s in result["coverage"]["signatures_skipped"]}
    assert skipped == {"custom/bad", "custom/bad\x1b[31m", "ignore.yaml"}
    assert f"file skipped: {folder}/bad.yaml:2: severity: " in shown.err
    assert "ignore.yaml:1: signature: " in shown.err
    assert "\x1b" not in shown.err
    assert main([*words, "--strict"]) == 3


def test_window_leaves_out_what_happened_before_it(capsys):
    assert main(["diagnose", str(FULL_DISK), "--since", "2027-01-01", "--format", "json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert {i["verdict"] for i in result["incidents"]} == {"empty-window"}


@pytest.mark.parametrize(
    ("text", "verdict", "code"),
    [
        ("", "no-logs", 2),
        ('Error from server (NotFound): pods "orders-taskmanager-1-1" not found\n', "no-logs", 2),
        ("The nightly Flink job crashed again.\n", "text-only", 0),
        ("2026-05-04 10:00:00,000 ERROR org.apache.spark.Foo - no\n", "not-flink", 0),
    ],
)
def test_input_without_flink_logs_is_never_a_finding(tmp_path, capsys, text, verdict, code):
    (tmp_path / "a.log").write_text(text)
    ended = main(["diagnose", str(tmp_path), "--fail-on", "minor", "--format", "json"])
    (incident,) = json.loads(capsys.readouterr().out)["incidents"]
    assert (incident["verdict"], ended) == (verdict, code)


def test_every_signature_is_listed(capsys):
    assert main(["signatures", "list"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") >= 80
    assert "rocksdb/bad-table-magic" in shown.out


def test_new_drafts_failures_named_only_by_a_general_signature(tmp_path, capsys):
    log = tmp_path / "taskmanager.log"
    log.write_text(
        "2026-11-21 09:10:07,311 WARN  org.apache.flink.runtime.taskmanager.Task [] - Map (1/2)#0"
        " switched from RUNNING to FAILED with failure cause:\n"
        "com.acme.session.SessionExpiredException: session 9017 expired after 1800 s\n"
        "\tat com.acme.session.SessionClient.call(SessionClient.java:88)\n"
    )
    assert main(["signatures", "new", str(log)]) == 2
    assert main(["diagnose", str(log), "--format", "json"]) == 0
    evidence = json.loads(capsys.readouterr().out)["incidents"][0]["diagnoses"][0]["evidence"][0]
    assert main(["signatures", "new", str(log), "--fingerprint", evidence["fingerprint"]]) == 0
    assert 'throwable: "com.acme.session.SessionExpiredException"' in capsys.readouterr().out


def test_new_drafts_a_signature_that_loads(tmp_path, capsys):
    log = tmp_path / "logs" / "taskmanager.log"
    log.parent.mkdir()
    log.write_text(
        "2026-11-21 05:00:00,000 ERROR org.apache.flink.Frob [] - oops\n"
        "org.apache.flink.util.FlinkException: The frobnicator is out of phase by 7\n"
        "\tat org.apache.flink.runtime.frob.Frobnicator.turn(Frobnicator.java:15)\n"
    )
    assert main(["signatures", "new", str(log), "--id", "custom/frobnicator"]) == 0
    draft = capsys.readouterr().out
    target = tmp_path / "pack" / "custom" / "frobnicator.yaml"
    target.parent.mkdir(parents=True)
    target.write_text(draft)
    assert main(["diagnose", str(log), "--signatures", str(tmp_path / "pack")]) == 0
    assert "frobnicator is out of phase" in capsys.readouterr().out


def test_an_interrupted_write_leaves_the_old_report(tmp_path, capsys):
    target = tmp_path / "folder-that-is-a-file" / "r.html"
    target.parent.write_text("not a folder")
    assert main(["diagnose", str(HEALTHY), "--report", str(target)]) == 4
    assert target.parent.read_text() == "not a folder"


def test_ignored_signatures_are_not_reported_but_counted(tmp_path, capsys):
    (tmp_path / "ignore.yaml").write_text(
        "- signature: kafka/offset-commit-failed\n  reason: lag is read elsewhere\n"
        '  expires: "2999-01-31"\n'
    )
    logs = LOGS / "kafka" / "offset-commit-failed" / "broker-frozen-1.20.1" / "logs"
    assert main(["diagnose", str(logs), "--signatures", str(tmp_path), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    reported = {d["signature"] for i in result["incidents"] for d in i["diagnoses"]}
    assert "kafka/offset-commit-failed" not in reported
    assert result["coverage"]["signatures_skipped"] == [
        {"signature": "kafka/offset-commit-failed", "reason": "ignored: lag is read elsewhere"}
    ]


def test_the_text_of_a_pack_does_nothing_to_the_screen(tmp_path, capsys):
    (tmp_path / "custom").mkdir()
    (tmp_path / "custom" / "one.yaml").write_text(
        'title: "Screen \\e]0;own\\a \\e[2J \\u202e was cleared"\nseverity: major\nrole: trigger\n'
        "match: {any: [{literal: screen was cleared}]}\ncause: \u202ebackwards\n"
        "remediation: {summary: Turn it back., risk: live}\n",
        encoding="utf-8",
    )
    extra = ["--signatures", str(tmp_path)]
    assert main(["signatures", "list", *extra]) == 0
    listed = capsys.readouterr().out
    assert main(["signatures", "show", "custom/one", *extra]) == 0
    shown = listed + capsys.readouterr().out
    assert main(["signatures", "lint", str(tmp_path)]) == 2
    shown += capsys.readouterr().out
    assert "was cleared" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_lint_does_not_quote_files_that_are_not_signatures(tmp_path, capsys):
    secret = tmp_path / "secret"
    folder = tmp_path / "pack" / "custom"
    folder.mkdir(parents=True)
    texts = ("root:x:0:hunter2\n", "hunter2: hunter2\nhunter2: 1\n", "- hunter2\n", "hunter2")
    for number, text in enumerate(texts):
        (tmp_path / f"secret{number}").write_text(text)
        (folder / f"link{number}.yaml").symlink_to(tmp_path / f"secret{number}")
    (folder / "broken.yaml").symlink_to(secret)
    os.mkfifo(folder / "fifo.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    (folder / "folder.yaml").mkdir()
    assert main(["signatures", "lint", str(tmp_path / "pack")]) == 2
    output = capsys.readouterr().out
    assert "hunter2" not in output
    for number in range(len(texts)):
        assert f"link{number}.yaml:1: file: is not a signature" in output
    assert "fifo.yaml:1: file: is not a regular file" in output
    assert "device.yaml:1: file: is not a regular file" in output
    assert "broken.yaml:1: file: cannot be read: No such file" in output
    assert "folder.yaml:1: file: " in output


@pytest.fixture(scope="module")
def completion() -> str:
    pytest.importorskip("shtab")
    return subprocess.run(
        [sys.executable, "-m", "flink_triage", "--print-completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("dia", "diagnose", id="command"),
        pytest.param("signatures sh", "show", id="subcommand"),
        pytest.param("diagnose logs --format sa", "sarif", id="option value"),
        pytest.param("run --ware", "--warehouse", id="option"),
    ],
)
def test_the_script_for_bash_completes(completion: str, words: str, expected: str) -> None:
    count = len(words.split())
    ask = f"COMP_WORDS=(flink-triage {words}); COMP_CWORD={count}; _shtab_flink_triage"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{completion}\n{ask}; echo ${{COMPREPLY[@]}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [expected]


def test_a_script_needs_an_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 4
    assert "pip install 'flink-triage[completion]'" in capsys.readouterr().err


def test_input_that_cannot_be_read_at_all_is_not_a_success(tmp_path, capsys):
    (tmp_path / "core.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 64)
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "binary" in capsys.readouterr().out
