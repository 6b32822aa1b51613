"""Lists and opens the input files."""
