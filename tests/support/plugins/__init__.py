"""Plugins of pytest that keep one test from hurting another; tests/conftest.py loads them."""
