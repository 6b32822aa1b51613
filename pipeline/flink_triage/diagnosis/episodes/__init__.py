"""Moments of a deployment in, episodes of failures out."""
