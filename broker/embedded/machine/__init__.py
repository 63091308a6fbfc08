"""Machine of an embedded broker: thread, loop and clock, disk, port, and log lines."""
