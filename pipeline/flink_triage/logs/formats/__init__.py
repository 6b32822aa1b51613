"""Extracts log lines from the text around them: prefixes, exports of log stores, Markdown."""
