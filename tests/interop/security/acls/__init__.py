"""Access control lists: the requests about them, and where brokers keep them."""
