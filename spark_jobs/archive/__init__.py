"""The archive: a topic as a table, written, read back, taken over from before, compared."""
