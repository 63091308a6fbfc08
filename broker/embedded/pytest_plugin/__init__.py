"""The pytest plugin: `plugin.py` is the entry point `kafka_broker`; start there.

It is imported in every run of pytest in an environment that has the wheel, so it imports the broker
only once a test needs one.
"""
