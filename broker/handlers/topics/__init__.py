"""Handlers of topic requests: Metadata, creation, growth, deletion, elections, reassignment."""
