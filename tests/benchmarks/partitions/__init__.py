"""What many partitions cost one broker; `tests.benchmarks.many_partitions` prints the rows."""
