"""Detects the encoding, carrier, layout, process, host, and Flink version of a file."""
