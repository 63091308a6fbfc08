"""Kafka as the driver sees it: topics, offsets, producing lines."""
