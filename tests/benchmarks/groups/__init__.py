"""Cost of groups to their coordinator, and of share groups to leaders; see `rebalances.py`."""
