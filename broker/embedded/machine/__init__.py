"""What an embedded broker stands on: thread, loop and clock, disk, port, and who hears its log."""
