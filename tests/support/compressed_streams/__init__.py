"""Compressed streams, built field by field: sound ones and others."""
