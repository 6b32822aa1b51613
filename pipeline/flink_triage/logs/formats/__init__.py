"""Extracts log lines from their surroundings: prefixes, log store exports, and Markdown."""
