"""Embedded brokers in the shape that users of other tools know them in."""
