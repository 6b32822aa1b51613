"""Spark and Delta: sessions, tables, the ledger and the run, without diagnosis logic."""
