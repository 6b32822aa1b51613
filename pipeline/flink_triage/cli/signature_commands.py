"""The actions of ``flink-triage signatures``: list, show, lint, test, new and export."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from flink_triage import exit_codes
from flink_triage.diagnosis.episodes.unknown_failures import is_unknown
from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.local import Options, scan_inputs
from flink_triage.report.facts.sanitize import clean, one_line
from flink_triage.signatures import SignaturePack, builtin_pack_directory, load_pack


def _pack(arguments: argparse.Namespace) -> SignaturePack:
    extra = [Path(d) for d in arguments.signatures]
    return load_pack((builtin_pack_directory(), *extra))


def list_(arguments: argparse.Namespace) -> int:
    pack = _pack(arguments)
    for signature in pack.signatures.values():
        affected = signature.versions.affected or "All"
        lines = "all" if affected.startswith("All") else re.split(r"[;,(:]", affected)[0].strip()
        print(
            f"{signature.id:<44} {signature.severity:<9} {signature.role:<14}"
            f" {one_line(lines[:20]):<20} {one_line(signature.title)}"
        )
    print(f"{len(pack.signatures)} signatures, pack {pack.digest[:12]}", file=sys.stderr)
    return 0


def show(arguments: argparse.Namespace) -> int:
    pack = _pack(arguments)
    signature = pack.signatures.get(arguments.id)
    if signature is None:
        import difflib

        near = difflib.get_close_matches(arguments.id, pack.signatures, n=3, cutoff=0.4)
        hint = f"; similar: {', '.join(near)}" if near else ""
        raise UsageError(f"no signature {arguments.id!r}{hint}")
    print(clean(Path(signature.path).read_text(encoding="utf-8")), end="")
    return 0


def _directories(arguments: argparse.Namespace) -> list[Path]:
    given = [Path(d) for d in arguments.directories]
    missing = [str(d) for d in given if not d.is_dir()]
    if missing:
        raise UsageError(f"no such directory: {', '.join(missing)}")
    return [builtin_pack_directory(), *given]


def lint(arguments: argparse.Namespace) -> int:
    from flink_triage.remediation import check_pack
    from flink_triage.signatures.lint import lint as problems_of

    problems = problems_of(_directories(arguments), check_pack)
    for problem in problems:
        print(one_line(problem))
    print(f"{len(problems)} problems", file=sys.stderr)
    return exit_codes.USAGE if problems else 0


def test(arguments: argparse.Namespace) -> int:
    from flink_triage.signatures.samples import check_examples

    pack = load_pack(_directories(arguments))
    problems = [str(problem) for problem in check_examples(pack)]
    for problem in problems:
        print(one_line(problem))
    examples = sum(
        len(s.examples.match) + len(s.examples.no_match) for s in pack.signatures.values()
    )
    print(
        f"{len(pack.signatures)} signatures, {examples} examples, {len(problems)} problems",
        file=sys.stderr,
    )
    return exit_codes.USAGE if problems else 0


def new(arguments: argparse.Namespace) -> int:
    from flink_triage.signatures.draft import draft

    options = replace(Options(), signature_directories=tuple(Path(d) for d in arguments.signatures))
    scanned = scan_inputs(arguments.paths, options, lambda done, total: None)
    named = {
        o.fingerprint.full
        for r in scanned.results
        for o in r.observations
        if o.fingerprint is not None and not is_unknown(o, scanned.pack)
    }
    wanted = arguments.fingerprint
    # A draft for a requested fingerprint is created even if a signature matches the failure.
    skipped = set[str]() if wanted else named
    traces = [t for r in scanned.results for t in r.traces if t.fingerprint.full not in skipped]
    traces.sort(key=lambda t: (-t.count, t.fingerprint.full))
    for row in traces:
        identities = (row.fingerprint.full, row.fingerprint.root_cause)
        if wanted is None or any(i.startswith(wanted) for i in identities):
            print(draft(row.trace, row.exemplar, arguments.signature_id), end="")
            return 0
    if not wanted:
        raise UsageError("no stack trace in these logs is without a signature")
    known = ", ".join(t.fingerprint.root_cause for t in traces[:5]) or "none"
    raise UsageError(f"--fingerprint: got {wanted}, found in these logs: {known}")


def export(arguments: argparse.Namespace) -> int:
    from flink_triage.signatures.export import export as export_pack

    target = Path(arguments.output)
    try:
        summary = export_pack(_pack(arguments), arguments.to, target, arguments.form)
    except OSError as problem:
        raise EnvironmentProblem(f"cannot write {target}: {problem.strerror or problem}") from None
    for place, reason in summary.left_out.items():
        print(f"skipped {place}: {reason}", file=sys.stderr)
    print(f"{summary.signatures} signatures in {summary.path}", file=sys.stderr)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": list_,
    "show": show,
    "lint": lint,
    "test": test,
    "new": new,
    "export": export,
}
