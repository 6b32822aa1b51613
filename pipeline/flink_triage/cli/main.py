"""Parses the command line of ``flink-triage``, runs the command and returns its exit code.

The exit code is 0 on success, or one of `exit_codes`. It does not depend on the output format.
"""

from __future__ import annotations

import argparse
import errno
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flink_triage import __version__, exit_codes
from flink_triage.cli import commands
from flink_triage.cli.alerting import add_alert_arguments
from flink_triage.cli.arguments import (
    add_input_arguments,
    add_output_arguments,
    add_spark_arguments,
    add_warehouse_arguments,
)
from flink_triage.cli.examples import epilog
from flink_triage.cli.history_commands import add_history_commands
from flink_triage.cli.maintain_command import add_upkeep_command
from flink_triage.errors import EnvironmentProblem, FlinkTriageError, UsageError
from flink_triage.model import Result
from flink_triage.report.facts.sanitize import clean
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures.schema_check import hint

# The errors for a full disk, an exhausted quota, and the limit of ``ulimit -f``.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flink-triage",
        description="Ranked root causes of Apache Flink failures, from the logs alone.",
        epilog=epilog(""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"flink-triage {__version__}")
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=("bash", "zsh", "tcsh", "fish"),
        help="print the completion script for this shell (extra completion)",
    )
    commands_of = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    _add_diagnose(commands_of)
    _add_run(commands_of)
    _add_report(commands_of)
    for command in add_history_commands(commands_of):
        add_warehouse_arguments(command)
    maintain = add_upkeep_command(commands_of)
    add_warehouse_arguments(maintain)
    add_spark_arguments(maintain)
    _add_signatures(commands_of)
    _add_demo_and_doctor(commands_of)
    for name, command in commands_of.choices.items():
        command.epilog = epilog(name)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _add_diagnose(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diagnose = commands_of.add_parser("diagnose", help="diagnose logs on this machine")
    diagnose.add_argument(
        "paths", nargs="+", metavar="PATH", help="log files and directories; - for standard input"
    )
    diagnose.add_argument(
        "--engine",
        choices=("local", "spark"),
        default="local",
        help="local, or spark for very large logs (default: local)",
    )
    add_input_arguments(diagnose)
    add_output_arguments(diagnose)
    diagnose.set_defaults(run=commands.diagnose)


def _add_run(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands_of.add_parser(
        "run", help="read new logs, diagnose them, and publish the results"
    )
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--input",
        action="append",
        metavar="PATH",
        dest="paths",
        help="log file, directory, or URI; repeatable",
    )
    what.add_argument(
        "--rematch",
        action="store_true",
        help="match the current signatures against stored events; no log is read",
    )
    run.add_argument(
        "--settle",
        type=float,
        default=DEFAULT_SETTINGS.settle_seconds,
        metavar="SECONDS",
        help="leave the last event of a file that changed within this time to the next run "
        f"(default: {DEFAULT_SETTINGS.settle_seconds:g})",
    )
    run.add_argument(
        "--skip-batch",
        type=int,
        metavar="N",
        help="skip a committed batch that cannot be finished; its files are read again",
    )
    add_warehouse_arguments(run)
    add_input_arguments(run)
    add_alert_arguments(run)
    add_output_arguments(run)
    run.set_defaults(run=commands.run)


def _add_report(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = commands_of.add_parser("report", help="render the last published run again")
    add_warehouse_arguments(report)
    add_spark_arguments(report)
    add_output_arguments(report)
    report.set_defaults(run=commands.report)


def _add_demo_and_doctor(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands_of.add_parser("demo", help="run the pipeline on real logs in the package")
    demo.add_argument("--warehouse", metavar="DIR", help="keep the tables in this folder")
    demo.add_argument(
        "--engine", choices=("local", "spark"), default="spark", help="default: spark"
    )
    add_output_arguments(demo)
    demo.set_defaults(run=commands.demo)

    doctor = commands_of.add_parser("doctor", help="check Java, Spark, Delta, JARs, and disk")
    doctor.add_argument(
        "--worker",
        metavar="PATH",
        help="check instead that a Spark worker can read PATH, diagnose, and use enough memory",
    )
    add_spark_arguments(doctor)
    doctor.add_argument("--quiet", "-q", action="store_true", help="print only problems")
    doctor.set_defaults(run=commands.doctor)


def _add_signatures(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    signatures = commands_of.add_parser("signatures", help="list, show, lint, test, new, export")
    actions = signatures.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, help_ in (
        ("list", "list all signatures: subsystem/name, severity, role, Flink lines, title"),
        ("show", "print the file of one signature"),
        ("lint", "report all problems of signature files, as path:line: field: reason"),
        ("test", "match all signatures against their examples and near misses"),
        ("new", "draft a signature from an unknown failure"),
        ("export", "export the pack for Flink's failure enrichers or the Kubernetes operator"),
    ):
        action = actions.add_parser(name, help=help_)
        if name == "show":
            action.add_argument("id", metavar="ID", help="such as rocksdb/bad-table-magic")
        if name in ("lint", "test"):
            action.add_argument(
                "directories", nargs="*", metavar="DIR", help="default: the built-in signatures"
            )
        if name == "new":
            action.add_argument("paths", nargs="+", metavar="PATH", help="logs with the failure")
            action.add_argument(
                "--fingerprint",
                help="fingerprint of the failure (default: the most frequent unknown failure)",
            )
            action.add_argument("--id", default="custom/new-failure", dest="signature_id")
        if name == "export":
            action.add_argument("--to", choices=("failure-enricher", "label-mapper"), required=True)
            action.add_argument("--output", default=".", metavar="DIR|FILE")
            action.add_argument(
                "--form",
                choices=("config.yaml", "flink-conf.yaml"),
                default="config.yaml",
                help="configuration file for the label mapper (default: config.yaml)",
            )
        if name in ("list", "show", "new", "export"):
            action.add_argument("--signatures", action="append", default=[], metavar="DIR")
        action.set_defaults(run=commands.signatures)


def main(
    argv: Sequence[str] | None = None, on_result: Callable[[Result], None] | None = None
) -> int:
    """Run one command and return its exit code.

    If the first argument is an existing path or a URI, the command is ``diagnose``. Invalid input
    does not raise an exception, except that argparse raises ``SystemExit`` for some invalid flags.
    It also does so for ``--help``, ``--version``, and ``--print-completion``. ``on_result``
    receives the result that the command has written, if any.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and not words[0].startswith("-") and ("://" in words[0] or os.path.exists(words[0])):
        words.insert(0, "diagnose")
    try:
        arguments = _parsed(build_parser(), words)
        arguments.on_result = on_result
        _end_on_sigterm()
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except FlinkTriageError as error:
        print(f"flink-triage: {clean(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except _Terminated:
        return exit_codes.TERMINATED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_reader_gone():
            _drop_stdout()
            return 0
        if isinstance(error, OSError) and error.errno in _FULL:
            _drop_stdout()
            where = error.filename or "to standard output or a temporary file"
            print(f"flink-triage: cannot write {where}: {error.strerror}", file=sys.stderr)
            return exit_codes.ENVIRONMENT
        traceback.print_exc()
        print("flink-triage: this is a bug; please report it with the lines above", file=sys.stderr)
        return exit_codes.BUG


def _parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the arguments.

    Raises ``UsageError`` for an unknown command or flag, with a similar name if there is one. Any
    other invalid argument ends the process with the message of argparse and exit code 2.
    """
    commands_of = _actions_of(parser)
    first = words[0] if words else "-"
    if not first.startswith("-") and first not in commands_of:
        if os.sep in first:
            raise UsageError(f"input: {first!r} does not exist; expected a file or a directory")
        raise UsageError(
            f"{first!r} is neither a command nor a file{hint(first, commands_of)};"
            f" commands: {', '.join(commands_of)}"
        )
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        name, command = "flink-triage", parser
        for word in words:
            if word in _actions_of(command):
                name, command = f"{name} {word}", _actions_of(command)[word]
        flag = unknown[0].partition("=")[0]
        flags = [flag for flag in command._option_string_actions if flag.startswith("--")]
        raise UsageError(f"{flag!r} is not an argument of {name}{hint(flag, flags)}; see --help")
    return arguments


def _actions_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands of a parser, or the actions of a command; empty if it has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def _is_reader_gone() -> bool:
    """Whether standard output, and not a different pipe or socket, has lost its reader."""
    try:
        sys.stdout.flush()
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return bool(poll.poll(0))
    except BrokenPipeError:
        return True
    except (OSError, ValueError):
        return False


def _drop_stdout() -> None:
    """Discard buffered output, so that the interpreter's final flush succeeds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _PrintCompletion(argparse.Action):
    """Print the completion script for the given shell, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *words: Any) -> None:
        try:
            import shtab
        except ImportError:
            need = "pip install 'flink-triage[completion]'"
            raise EnvironmentProblem(f"shtab is missing: {need}") from None
        _, shell, _ = words
        print(shtab.complete(parser, shell=shell))
        parser.exit()


class _Terminated(BaseException):
    """Raised on SIGTERM, so that open resources are closed, as on Ctrl-C."""


def _end_on_sigterm() -> None:
    def end(number: int, frame: object) -> None:
        raise _Terminated

    # Only the main thread may set a handler; in other threads, the caller decides.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)
