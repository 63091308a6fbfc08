"""What clients tell of themselves (KIP-714): who is asked for which metrics, and what they pushed.

`telemetry` answers the two requests; `subscriptions` are CLIENT_METRICS resources, kept in the
metadata store; `instances` are the clients that ask; `otlp` reads what they push, and `series`
keeps it until it is scraped. Time is an argument. Start with `telemetry.py`.
"""
