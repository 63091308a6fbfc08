"""Brokers as the controller sees them: registration, election, control requests, failures."""
