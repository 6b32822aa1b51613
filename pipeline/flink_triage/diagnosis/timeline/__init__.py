"""Builds one timeline per deployment from its observations."""
