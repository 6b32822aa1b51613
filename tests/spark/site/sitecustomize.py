"""Imported by each Python worker whose ``PYTHONPATH`` starts with this folder."""

from tests.spark.faults import install

install()
