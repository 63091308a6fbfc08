"""Streams groups (KIP-1071): heartbeats, logs and applications, beside Apache Kafka."""
