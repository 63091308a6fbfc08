"""How passwords come into a configuration, and how they are kept.

Part of `config`, and imported by what reads a property file or dynamic settings.
"""
