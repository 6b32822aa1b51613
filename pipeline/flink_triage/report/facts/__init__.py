"""What every format says of a result."""
