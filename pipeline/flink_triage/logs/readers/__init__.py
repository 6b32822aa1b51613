"""Reads byte ranges of files into events."""
