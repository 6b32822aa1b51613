"""Ranked episodes in, incidents for reports out."""
