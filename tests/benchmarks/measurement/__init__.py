"""What the benchmarks share: the brokers compared, the tools run on them, rows and reports."""
