"""Diagnosis and effective configuration in, checked changes for the running Flink line out."""

from .check import check_pack
from .merge import merge_changes
from .options import Option, OptionTable, Setting, options_directory
from .patch import PatchForm, default_form, render_patch
from .resolve import resolve
from .versions import LINES, NEWEST, flink_line, line_note

__all__ = [
    "LINES",
    "NEWEST",
    "Option",
    "OptionTable",
    "PatchForm",
    "Setting",
    "check_pack",
    "default_form",
    "flink_line",
    "line_note",
    "merge_changes",
    "options_directory",
    "render_patch",
    "resolve",
]
