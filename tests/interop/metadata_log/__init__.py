"""The metadata log of Apache Kafka 4."""
