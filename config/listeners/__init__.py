"""Listeners of the broker, their settings, and the syntax of log-ins (JAAS). Pure.

What it is: the keys of listeners, read together. What it is not: a socket. Start in `endpoints`.
"""
