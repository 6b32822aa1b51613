"""The console command ``flink-triage``."""

from .main import main

__all__ = ["main"]
