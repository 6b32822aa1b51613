"""Extracts log lines from prefixes, log store exports, and Markdown."""
