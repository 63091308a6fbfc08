"""The pytest plugin: `plugin.py` is what the entry point `kafka_broker` names; start there.

It is imported in every run of pytest in an environment that has the wheel, so it imports the broker
only once a test asks for one.
"""
