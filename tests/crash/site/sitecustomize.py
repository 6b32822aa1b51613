"""Imported, through ``PYTHONPATH``, by each Python process of the rig, including Spark workers."""

from tests.crash.orders import install

install()
