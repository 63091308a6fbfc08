"""Blocks of the documentation, run as they stand there: only addresses are replaced."""
