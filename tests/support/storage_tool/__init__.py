"""Command lines of `kafka-storage` and their outcomes with Apache Kafka's tool."""
