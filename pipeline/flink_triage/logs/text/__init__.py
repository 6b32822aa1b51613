"""Decodes bytes to text, and masks secrets in the text."""
