"""Spark as the jobs use it: sessions, streams, tables, checkpoints, lookup tables."""
