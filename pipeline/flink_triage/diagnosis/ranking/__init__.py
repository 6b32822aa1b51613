"""Ranks the candidates of each episode by how likely they are the root cause."""
