"""One segment of a log: its `.log` file, its indexes, and what a crash leaves of them."""
