"""Observations in, one timeline per deployment out."""
