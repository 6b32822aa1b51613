"""Detects the encoding, carrier, layout, process, host, and Flink version of a file.

Also detects documents, and classifies text that is not a log.
"""
