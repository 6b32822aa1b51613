"""Byte ranges to events."""
