"""Committed offsets: plain ones, those of open transactions, and how they are read."""
