"""Cost of many partitions to one broker; `tests.benchmarks.many_partitions` prints the rows."""
