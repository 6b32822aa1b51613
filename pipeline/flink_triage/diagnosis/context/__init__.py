"""Observations read in the light of their neighbours."""
