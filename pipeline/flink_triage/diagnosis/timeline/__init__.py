"""Observations in the order of time."""
