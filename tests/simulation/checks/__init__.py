"""Invariants: of each step, of each answer, and of the logs in the end."""
