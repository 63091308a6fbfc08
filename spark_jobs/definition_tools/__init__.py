"""Definitions as files that people write: checked, described, and inferred from a topic."""
