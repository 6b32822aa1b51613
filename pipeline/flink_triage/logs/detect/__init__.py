"""Detects the encoding, layout, process, and Flink version of a file."""
