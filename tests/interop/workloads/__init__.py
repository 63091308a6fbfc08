"""Clients at work while brokers are killed: processes of their own, and loads at a steady rate."""
