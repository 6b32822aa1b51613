"""Loads directories of signature files into one validated ``SignaturePack``.

Later directories override earlier ones per signature, so that a team can replace a built-in
signature with a file that has the same relative path.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from flink_triage.errors import SignaturePackError
from flink_triage.logs.layouts.custom_layouts import LAYOUT_FILE
from flink_triage.model import SkippedSignature
from flink_triage.package_data import builtin_pack_directory as builtin_pack_directory
from flink_triage.signatures.error_forms import FORMS_DIRECTORY
from flink_triage.signatures.loader import load_signature
from flink_triage.signatures.pack_cache import keep, kept, key_of_files
from flink_triage.signatures.schema_check import Checked, Schema, check, hint, load_schema
from flink_triage.signatures.signature import Ignored, Meaning, Signature
from flink_triage.yaml_documents import Problem, read_document

IGNORE_FILE = "ignore.yaml"
SCHEMA_FILE = "signature.schema.json"
# Directories with data for other stages, stored next to the signatures.
_DATA_DIRECTORIES = frozenset({"class-jars", "flink-options", FORMS_DIRECTORY})
_IGNORE_SCHEMA: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["signature", "reason"],
        "properties": {
            "signature": {"type": "string"},
            "reason": {"type": "string"},
            "expires": {
                "type": "string",
                "pattern": r"^\d{4}-\d\d-\d\d$",
                "description": "a day such as 2027-01-31",
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class SignaturePack:
    """Signatures by ID, in ID order.

    ``literals`` contains all literals of alternatives. Literals of vetoes are excluded, because
    vetoes are only checked for events that match. ``anchors`` contains the ``anchors`` of all
    alternatives, which a scanner searches for. ``digest`` changes with any signature or ignore
    decision, but not with comments or file order. ``skipped`` has an entry for each problem in a
    skipped file.
    """

    signatures: Mapping[str, Signature]
    literals: tuple[str, ...]
    anchors: tuple[str, ...]
    digest: str
    ignored: tuple[Ignored, ...] = ()
    skipped: tuple[SkippedSignature, ...] = ()

    def __hash__(self) -> int:
        return hash(self.digest)

    def with_meaning(self, meaning: Meaning) -> tuple[str, ...]:
        """The IDs of the signatures with this meaning; empty if the pack has none."""
        return tuple(id_ for id_, one in self.signatures.items() if one.meaning == meaning)

    @property
    def wordings(self) -> tuple[str, ...]:
        """The literals, regexes, and class names of all alternatives, as a source of words."""
        texts = {
            text
            for signature in self.signatures.values()
            for alternative in signature.alternatives
            for text in (
                alternative.regex or "",
                *alternative.throwables,
                *alternative.root_causes,
            )
        }
        return (*self.literals, *sorted(texts))

    def ignored_on(self, day: date) -> frozenset[str]:
        """The IDs of the signatures that are ignored on that day."""
        return frozenset(entry.signature for entry in self.decisions_on(day))

    def decisions_on(self, day: date) -> tuple[Ignored, ...]:
        """The ignore decisions that are in effect on that day."""
        return tuple(e for e in self.ignored if e.expires is None or day <= e.expires)

    def heard_on(self, day: date) -> SignaturePack:
        """The pack for that day, in which ignored signatures still match, but are benign."""
        ignored = self.ignored_on(day)
        if not ignored:
            return self
        signatures = {
            id_: replace(signature, role="benign") if id_ in ignored else signature
            for id_, signature in self.signatures.items()
        }
        return replace(self, signatures=signatures)


def load_pack(directories: Sequence[Path]) -> SignaturePack:
    """Load all signatures in ``directories``; raises ``SignaturePackError`` with all problems.

    Packs are cached in the process and on disk, so that unchanged files are not parsed again.
    """
    return _load_pack(tuple(map(str, directories)), _stamp(directories))


def load_usable_pack(directories: Sequence[Path]) -> SignaturePack:
    """Like ``load_pack``, but skips files that have problems; ``skipped`` lists the problems.

    Raises ``SignaturePackError`` for problems in the first directory, which contains the built-in
    signatures, and for a missing directory.
    """
    return _load_usable_pack(tuple(map(str, directories)), _stamp(directories))


@lru_cache(maxsize=8)
def _load_pack(directories: tuple[str, ...], stamp: tuple[object, ...]) -> SignaturePack:
    del stamp  # only part of the cache key
    paths = [Path(directory) for directory in directories]
    key = key_of_files(paths)
    stored = kept("signatures", key)
    if isinstance(stored, SignaturePack):
        return stored
    pack, problems = read_pack(paths)
    if problems:
        raise SignaturePackError([str(problem) for problem in problems])
    keep("signatures", key, pack)
    return pack


@lru_cache(maxsize=8)
def _load_usable_pack(directories: tuple[str, ...], stamp: tuple[object, ...]) -> SignaturePack:
    del stamp
    paths = [Path(directory) for directory in directories]
    key = key_of_files(paths)
    stored = kept("signatures", key)
    if isinstance(stored, SignaturePack):
        return stored
    skipped: list[Problem] = []
    while True:
        # A skipped file may have overridden a signature, which is now in effect, so check it.
        pack, problems = read_pack(paths, frozenset(problem.path for problem in skipped))
        fatal = [p for p in problems if not is_in_any(p.path, paths[1:])]
        if fatal:
            raise SignaturePackError([str(problem) for problem in fatal])
        if not (problems or skipped):
            keep("signatures", key, pack)
            return pack
        if not problems:
            return replace(pack, skipped=tuple(_skipped(p, paths) for p in skipped))
        skipped.extend(problems)


def is_in_any(path: str, directories: Iterable[Path]) -> bool:
    return any(directory in Path(path).parents for directory in directories)


def _skipped(problem: Problem, directories: Sequence[Path]) -> SkippedSignature:
    path = Path(problem.path)
    home = next(d for d in reversed(directories) if d in path.parents)
    name = path.relative_to(home)
    signature_id = name.with_suffix("") if len(name.parts) > 1 else name
    return SkippedSignature(signature_id.as_posix(), str(problem))


def _stamp(directories: Sequence[Path]) -> tuple[object, ...]:
    stamps: list[tuple[str, int, int]] = []
    for directory in map(Path, directories):
        for path in directory.rglob("*.y*ml") if directory.is_dir() else ():
            try:
                status = path.stat()
            except OSError:  # a broken link, which is reported when the file is read
                continue
            stamps.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(sorted(stamps))


def read_pack(
    directories: Sequence[Path], without: Collection[str] = ()
) -> tuple[SignaturePack, tuple[Problem, ...]]:
    """The valid signatures and all problems; the files in ``without`` are skipped."""
    schema = load_schema(builtin_pack_directory() / SCHEMA_FILE)
    signatures: dict[str, Signature] = {}
    ignored: list[tuple[Ignored, str, int]] = []
    problems: list[Problem] = []
    broken: set[str] = set()
    for directory in directories:
        found = _read_directory(Path(directory), schema, problems, broken, without)
        signatures.update(found)
        if str(Path(directory) / IGNORE_FILE) not in without:
            ignored.extend(_read_ignored(Path(directory), problems))
    problems.extend(_cross_check(signatures, broken, ignored, Path(directories[0])))
    pack = build_pack(signatures.values(), [entry for entry, _, _ in ignored])
    return pack, tuple(problems)


def build_pack(signatures: Iterable[Signature], ignored: Iterable[Ignored] = ()) -> SignaturePack:
    """A pack with the given signatures, without validation."""
    by_id = {signature.id: signature for signature in sorted(signatures, key=lambda s: s.id)}
    decisions = tuple(sorted(ignored, key=lambda entry: (entry.signature, entry.reason)))
    alternatives = [one for signature in by_id.values() for one in signature.alternatives]
    return SignaturePack(
        signatures=by_id,
        literals=tuple(sorted({literal for one in alternatives for literal in one.literals})),
        anchors=tuple(sorted({anchor for one in alternatives for anchor in one.anchors})),
        digest=_digest(by_id.values(), decisions),
        ignored=decisions,
    )


def _digest(signatures: Iterable[Signature], ignored: Iterable[Ignored]) -> str:
    content = {
        "signatures": [_canonical(signature) for signature in signatures],
        "ignored": [asdict(entry) for entry in ignored],
    }
    text = json.dumps(content, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _canonical(signature: Signature) -> dict[str, object]:
    # The path of a signature is not part of its content.
    values = asdict(signature)
    del values["path"], values["lines"]
    return values


# --- one directory -----------------------------------------------------------------------------


def _read_directory(
    directory: Path,
    schema: Schema,
    problems: list[Problem],
    broken: set[str],
    without: Collection[str],
) -> dict[str, Signature]:
    signatures: dict[str, Signature] = {}
    if not directory.is_dir():
        problems.append(Problem(str(directory), 1, "directory", "is not a directory"))
        return signatures
    for path in _yaml_files(directory):
        relative = path.relative_to(directory)
        problem = _misplaced(relative, schema)
        if problem is not None and str(path) not in without:
            problems.append(Problem(str(path), 1, "path", problem))
            continue
        signature_id = relative.with_suffix("").as_posix()
        if str(path) in without:
            broken.add(signature_id)
            continue
        signature, found = load_signature(path, signature_id, str(path), schema)
        problems.extend(found)
        if signature is None:
            broken.add(signature_id)
        else:
            signatures[signature_id] = signature
    return signatures


def _yaml_files(directory: Path) -> list[Path]:
    return sorted(
        path
        for path in directory.rglob("*.y*ml")
        if path.suffix in (".yaml", ".yml")
        and path.relative_to(directory).parts[0] not in _DATA_DIRECTORIES
        and not any(part.startswith(".") for part in path.relative_to(directory).parts)
        and path.relative_to(directory) not in (Path(IGNORE_FILE), Path(LAYOUT_FILE))
    )


def _misplaced(relative: Path, schema: Schema) -> str | None:
    if relative.suffix != ".yaml":
        return f"ends in {relative.suffix}; rename it to .yaml"
    pattern = schema["properties"]["explains"]["items"]["pattern"]
    if re.search(pattern, relative.with_suffix("").as_posix()):
        return None
    place = "<subsystem>/<name>.yaml with lowercase letters, digits and single hyphens in between"
    return f'"{relative.as_posix()}" is not a valid signature path; expected {place}'


def _read_ignored(directory: Path, problems: list[Problem]) -> list[tuple[Ignored, str, int]]:
    path = directory / IGNORE_FILE
    if not path.is_file():
        return []
    node, found = read_document(path, str(path))
    problems.extend(found)
    if node is None:
        return []
    checked = check(node, _IGNORE_SCHEMA, str(path))
    problems.extend(checked.problems)
    if checked.problems:
        return []
    return [
        (decision, str(path), checked.lines[f"[{index}]"])
        for index, item in enumerate(checked.value)
        if (decision := _ignored(item, checked, index, problems)) is not None
    ]


def _ignored(
    item: Mapping[str, str], checked: Checked, index: int, problems: list[Problem]
) -> Ignored | None:
    expires = item.get("expires")
    try:
        day = date.fromisoformat(expires) if expires else None
    except ValueError:
        field = f"[{index}].expires"
        reason = f'"{expires}" is not a valid date'
        problems.append(Problem(checked.label, checked.lines[field], field, reason))
        return None
    return Ignored(item["signature"], item["reason"].strip(), day)


# --- across files ------------------------------------------------------------------------------


def _cross_check(
    signatures: Mapping[str, Signature],
    broken: set[str],
    ignored: Sequence[tuple[Ignored, str, int]],
    first_directory: Path,
) -> list[Problem]:
    known = signatures.keys() | broken
    problems = [
        Problem(path, line, "signature", f'"{entry.signature}" {_unknown(entry.signature, known)}')
        for entry, path, line in ignored
        if entry.signature not in known
    ]
    for signature in signatures.values():
        for index, explained in enumerate(signature.explains):
            if explained not in known:
                field = f"explains[{index}]"
                line = signature.lines.get(field, 1)
                reason = f'"{explained}" {_unknown(explained, known)}'
                problems.append(Problem(signature.path, line, field, reason))
    cycle = find_cycle({key: signature.explains for key, signature in signatures.items()})
    if cycle:
        # The built-in signatures have no cycles, so another file is part of this cycle.
        others = (signatures[key] for key in cycle)
        added = (s for s in others if first_directory not in Path(s.path).parents)
        first = next(added, signatures[cycle[0]])
        reason = f"is cyclic: {' -> '.join(cycle)}"
        problems.append(Problem(first.path, first.lines.get("explains", 1), "explains", reason))
    return problems


def _unknown(signature_id: str, known: Iterable[str]) -> str:
    return f"is not a signature of this pack{hint(signature_id, known)}"


def find_cycle(edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A cycle in the graph, which starts and ends at the same node; empty if there is none."""
    try:
        TopologicalSorter({one: sorted(edges[one]) for one in sorted(edges)}).prepare()
    except CycleError as error:
        # Each node in the cycle is a predecessor of the next one, so the edges lead backward.
        *nodes, _ = reversed(error.args[1])
        first = nodes.index(min(nodes))
        return (*nodes[first:], *nodes[:first], nodes[first])
    return ()
