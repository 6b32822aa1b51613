"""Decodes bytes to text, and masks secrets."""
