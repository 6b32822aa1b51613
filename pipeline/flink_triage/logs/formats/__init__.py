"""Extracts log lines from text with prefixes, from log store exports, and from Markdown."""
