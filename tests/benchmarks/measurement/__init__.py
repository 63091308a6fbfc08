"""Shared parts of the benchmarks: the brokers compared, the tools run on them, rows and reports."""
