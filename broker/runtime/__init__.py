"""Clocks, timers, tasks, slices, threads, descriptors: the base of all parts of the broker."""
