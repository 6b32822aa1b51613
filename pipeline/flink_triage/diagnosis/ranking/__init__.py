"""Ranks the candidates of each episode by their likelihood of being the root cause."""
