"""Episodes to incidents."""
