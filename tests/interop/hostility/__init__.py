"""Hostile clients, and their cost to a broker when there are many."""
