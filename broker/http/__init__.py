"""What this broker serves over HTTP listens here: metrics, look-ups by key."""
