"""Loads signatures from YAML files, and matches them against events."""

from flink_triage.signatures.matcher import Matcher
from flink_triage.signatures.pack import (
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    load_pack,
    load_usable_pack,
    read_pack,
)
from flink_triage.signatures.repetition import episode_match
from flink_triage.signatures.signature import (
    Alternative,
    ComputedValue,
    ConfigSpec,
    Examples,
    Ignored,
    RemediationSpec,
    Signature,
    Versions,
    When,
)
from flink_triage.yaml_documents import Problem

__all__ = [
    "Alternative",
    "ComputedValue",
    "ConfigSpec",
    "Examples",
    "Ignored",
    "Matcher",
    "Problem",
    "RemediationSpec",
    "Signature",
    "SignaturePack",
    "Versions",
    "When",
    "build_pack",
    "builtin_pack_directory",
    "episode_match",
    "load_pack",
    "load_usable_pack",
    "read_pack",
]
