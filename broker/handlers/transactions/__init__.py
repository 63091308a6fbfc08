"""Handlers of transaction requests and of those about producers."""
