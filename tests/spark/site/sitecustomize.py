"""Imported by each Python worker whose ``PYTHONPATH`` begins with this folder."""

from tests.spark.faults import install

install()
