"""Stretches of trouble."""
