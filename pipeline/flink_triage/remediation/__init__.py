"""Adapts remediations to the running Flink line and the effective configuration."""

from flink_triage.remediation.check import check_pack
from flink_triage.remediation.option_table import Option, OptionTable, Setting, options_directory
from flink_triage.remediation.patch import PatchForm, default_form, render_patch
from flink_triage.remediation.resolve import resolve
from flink_triage.remediation.versions import LINES, NEWEST, flink_line, line_note

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
    "options_directory",
    "render_patch",
    "resolve",
]
