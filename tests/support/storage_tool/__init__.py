"""Command lines of `kafka-storage`, what Apache Kafka's tool did with each, and how to compare."""
