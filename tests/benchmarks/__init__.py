"""Measurements of a running broker, never asserted on by a timed test.

Start reading at `end_to_end`, which `make bench` runs: Kafka's own performance tools against
Apache Kafka and against ours, in turn, on the same machine. Each module beside it is a benchmark
that can be run by itself; what they share lies in `measurement/`.
"""
