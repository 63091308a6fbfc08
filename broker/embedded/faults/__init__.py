"""Requests of clients to an embedded broker: recorded for assertions, and disturbed by faults."""
