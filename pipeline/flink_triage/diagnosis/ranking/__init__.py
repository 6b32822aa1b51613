"""Episodes in, their candidates ranked by how likely they are the root cause out."""
