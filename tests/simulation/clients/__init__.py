"""Producers and consumers of a run, and what they send."""
