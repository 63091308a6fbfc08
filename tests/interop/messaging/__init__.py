"""Delays, our broker's extension of Apache Kafka, used by stock clients."""
