"""Passwords in a configuration: their sources and their storage.

Part of `config`, and imported by readers of property files and dynamic settings.
"""
