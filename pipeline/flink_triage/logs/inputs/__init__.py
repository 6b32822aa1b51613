"""Which files there are, and how they are opened."""
