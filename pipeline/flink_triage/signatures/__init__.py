"""YAML signatures in, matches with evidence out."""

from ..yaml_documents import Problem
from .episodes import episode_match
from .matcher import Matcher
from .pack import (
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    load_pack,
    load_usable_pack,
    read_pack,
)
from .signature import (
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
