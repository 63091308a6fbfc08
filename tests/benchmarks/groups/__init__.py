"""What groups cost their coordinator, and share groups their leaders; see `rebalances.py`."""
