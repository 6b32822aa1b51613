"""Which signature is the root cause."""
