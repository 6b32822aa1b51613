"""Reads events from byte ranges of files."""
