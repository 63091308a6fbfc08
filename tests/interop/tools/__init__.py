"""Kafka's own command-line tools, of two versions, against a running broker."""
