"""What a file is: layout, encoding, process, product."""
