"""Bytes to text: line ends, encodings, secrets."""
