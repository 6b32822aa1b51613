"""Spark and Delta: sessions, tables, the ledger and the run; plumbing that decides nothing."""
