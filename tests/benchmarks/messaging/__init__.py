"""Benchmarks of our broker's extensions of Apache Kafka."""
