"""Several brokers in one process: what holds them together, and the time that passes for all."""
