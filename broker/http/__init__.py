"""Endpoints of this broker over HTTP: metrics, look-ups by key."""
