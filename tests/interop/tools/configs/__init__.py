"""Configurations and counts of topics, as clients write them, beside Apache Kafka."""
