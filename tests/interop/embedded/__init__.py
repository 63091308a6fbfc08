"""Embedded brokers (`broker.testing`) with stock clients, as users' tests have them."""
