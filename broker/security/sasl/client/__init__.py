"""SASL at the side of a client: how this broker logs in at others.

Start with `mechanism.py`; connections are with `broker.network.authentication`.
"""
