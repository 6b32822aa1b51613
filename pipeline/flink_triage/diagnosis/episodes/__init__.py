"""Groups the moments of a deployment into episodes of failures."""
