"""Failed records: when they are due, what becomes of them, replaying dead letters."""
