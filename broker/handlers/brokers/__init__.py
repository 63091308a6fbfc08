"""Handlers of requests about brokers: configurations, log directories, control requests."""
