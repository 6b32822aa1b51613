"""Exports a pack to Flink: FailureEnricher rules, and labels for the Kubernetes operator.

Both receive an exception instead of a log. Signatures that require other information are omitted,
with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from flink_triage.signatures.export.failure_enricher import (
    RULES_FILE,
    EnricherRules,
    failure_enricher,
    render_rules,
)
from flink_triage.signatures.export.java_regex import Untranslatable, escape_java, to_java
from flink_triage.signatures.export.label_mapper import (
    LABEL_MAPPER_KEY,
    LabelMapper,
    LabelMapperForm,
    label_mapper,
    render_label_mapper,
)
from flink_triage.signatures.pack import SignaturePack

ExportKind = Literal["failure-enricher", "label-mapper"]
EXPORT_KINDS: tuple[ExportKind, ...] = get_args(ExportKind)

# A file with one line, to be appended to the operator's configuration file.
LABEL_MAPPER_FILE = "label-mapper.yaml"


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The path of the export, its number of signatures, and the reasons for omissions.

    ``left_out`` maps a signature ID, or ``id: match.any[2]`` for one alternative, to the reason.
    """

    path: Path
    signatures: int
    left_out: Mapping[str, str]


def export(
    pack: SignaturePack,
    kind: ExportKind,
    target: Path,
    form: LabelMapperForm = "config.yaml",
) -> ExportSummary:
    """Write ``pack``, in the format of another tool, to ``target``.

    ``target`` is a file or an existing directory. In a directory, the file is ``RULES_FILE`` or
    ``LABEL_MAPPER_FILE``. ``form`` selects the quoting rules of the operator's configuration file,
    and has no effect on FailureEnricher rules. Parent directories are created; an existing file is
    replaced. Raises ``OSError``.
    """
    if kind == "failure-enricher":
        rules = failure_enricher(pack)
        text, name, left_out = render_rules(rules), RULES_FILE, rules.left_out
        count = len(rules.pack.signatures)
    else:
        mapper = label_mapper(pack)
        text, name = render_label_mapper(mapper.labels, form), LABEL_MAPPER_FILE
        count, left_out = len(set(mapper.labels.values())), mapper.left_out
    path = target / name if target.is_dir() else target
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return ExportSummary(path, count, left_out)


__all__ = [
    "EXPORT_KINDS",
    "LABEL_MAPPER_FILE",
    "LABEL_MAPPER_KEY",
    "RULES_FILE",
    "EnricherRules",
    "ExportKind",
    "ExportSummary",
    "LabelMapper",
    "LabelMapperForm",
    "Untranslatable",
    "escape_java",
    "export",
    "failure_enricher",
    "label_mapper",
    "render_label_mapper",
    "render_rules",
    "to_java",
]
