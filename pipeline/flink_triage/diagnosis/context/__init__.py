"""Interpret observations by their neighbouring lines."""
