"""Transactions of stock clients, atomic under kills of brokers and clients."""
