"""The console command ``flink-triage``."""

from flink_triage.cli.main import main

__all__ = ["main"]
