"""Metrics of clients (KIP-714): subscriptions, and the metrics pushed.

`telemetry` answers the two requests; `subscriptions` are CLIENT_METRICS resources, kept in the
metadata store; `instances` are the clients; `otlp` reads their pushes, and `series` keeps the
metrics until they are scraped. Time is an argument. Start with `telemetry.py`.
"""
