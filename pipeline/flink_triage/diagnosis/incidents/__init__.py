"""Turns ranked episodes into incidents for reports."""
