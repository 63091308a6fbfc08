"""Clocks, timers, tasks, slices, threads, descriptors: what the rest of the broker runs on."""
