"""Imported by each Python that the rig starts, and so by Spark's workers: see ``PYTHONPATH``."""

from tests.crash.orders import install

install()
