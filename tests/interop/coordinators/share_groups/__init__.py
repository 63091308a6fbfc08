"""Coordinators of groups and transactions: golden scripts over sockets, and rebalances."""
