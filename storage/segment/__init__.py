"""One segment of a log: its `.log` file, its indexes, and their recovery after a crash."""
