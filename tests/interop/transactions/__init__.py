"""Transactions of stock clients, whoever is killed in their midst: all of each, or nothing."""
