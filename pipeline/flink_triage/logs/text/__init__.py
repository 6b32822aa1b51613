"""Decodes and redacts text, classifies lines of stack traces, and finds literals."""
