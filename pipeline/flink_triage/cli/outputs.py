"""Writes a result to files and to the screen, and determines the exit code."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from flink_triage import exit_codes
from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.model import SEVERITIES, Result
from flink_triage.report import Format, render_pieces

_PAGE_WIDTH = 80


def write_outputs(result: Result, arguments: argparse.Namespace) -> int:
    """Write all requested formats; return the exit code.

    Raises ``UsageError`` if the output flags are inconsistent, and ``EnvironmentProblem`` if an
    output cannot be written.
    """
    for format_, target in _targets(arguments):
        is_screen = target is None
        pieces = render_pieces(
            result,
            format_,
            verbose=arguments.verbose,
            color=is_screen and format_ == "text" and wants_color(sys.stdout, os.environ),
            width=_screen_width() if is_screen else _PAGE_WIDTH,
        )
        if target is None:
            _print(pieces)
        else:
            _write(Path(target), pieces)
            if not arguments.quiet:
                print(f"wrote {target}", file=sys.stderr)
    if arguments.on_result is not None:
        arguments.on_result(result)
    return exit_code(result, arguments.fail_on, arguments.strict)


def wants_color(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to use color: the stream is a terminal, and neither NO_COLOR nor TERM=dumb is set."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def _screen_width() -> int:
    """Terminal columns of standard output; without a terminal, the width of a page."""
    if not sys.stdout.isatty():
        return _PAGE_WIDTH
    return shutil.get_terminal_size((_PAGE_WIDTH, 24)).columns


def exit_code(result: Result, fail_on: str, strict: bool) -> int:
    """The exit code of a command that produced ``result``; see `exit_codes`.

    ``fail_on`` is the lowest severity that counts as a finding, or ``none``. Findings take
    precedence over input without a diagnosis, and over incomplete input (only if ``strict``).
    """
    coverage = result.coverage
    if fail_on != "none":
        wanted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        if any(d.severity in wanted for i in result.incidents for d in i.diagnoses):
            return exit_codes.FINDINGS
        # A failure without a signature may also have stopped a job, so it counts as major.
        if "major" in wanted and any(i.verdict == "undetermined" for i in result.incidents):
            return exit_codes.FINDINGS
    # No Flink log was read, no deployment could be diagnosed, or no notable event is between
    # --since and --until.
    if {incident.verdict for incident in result.incidents} <= {"no-logs", "empty-window"}:
        is_undiagnosed = any(quarantined.is_undiagnosed for quarantined in coverage.quarantined)
        return exit_codes.BUG if is_undiagnosed else exit_codes.USAGE
    gave_up = any(not s.reason.startswith("ignored: ") for s in coverage.signatures_skipped)
    is_partial = not all(quarantined.is_ignored for quarantined in coverage.quarantined)
    is_incomplete = is_partial or coverage.truncated > 0 or gave_up
    return exit_codes.INCOMPLETE if strict and is_incomplete else 0


def _targets(arguments: argparse.Namespace) -> list[tuple[Format, str | None]]:
    formats, outputs = list(arguments.format), list(arguments.output)
    if len(outputs) > max(1, len(formats)):
        raise UsageError(
            f"got {len(outputs)} --output and {len(formats)} --format options;"
            " each --output requires a matching --format"
        )
    if not formats:
        formats = ["text"]
    targets: list[tuple[Format, str | None]] = [
        (f, outputs[i] if i < len(outputs) and outputs[i] != "-" else None)
        for i, f in enumerate(formats)
    ]
    if arguments.report:
        targets.append(("html", None if arguments.report == "-" else arguments.report))
    if sum(target is None for _, target in targets) > 1:
        raise UsageError(
            "only one report can be written to standard output; set --output FILE for the others"
        )
    return targets


def _print(pieces: Iterable[str]) -> None:
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Flushing the text left in the buffer would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = error.strerror or error
        raise EnvironmentProblem(f"cannot write to standard output: {reason}") from None


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write a file completely or not at all, and create its missing parent folders.

    Streams, such as a FIFO or a path below /dev, are written directly. A link is followed: its
    target is replaced. Raises ``EnvironmentProblem`` if the path cannot be written.
    """
    try:
        if _is_stream(path):
            with path.open("w", encoding="utf-8") as stream:
                stream.writelines(pieces)
        else:
            _replace(Path(os.path.realpath(path)), pieces)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error


def _is_stream(path: Path) -> bool:
    """Whether the path is below /dev or /proc, or is a FIFO, a socket or a device."""
    if path.is_relative_to("/dev") or path.is_relative_to("/proc"):
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _replace(path: Path, pieces: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A short name, because the file name may already have the maximum length.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(pieces)
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
