"""A file in, its layout, encoding, process and product out."""
