"""A cluster in one process on a clock of its own: loop, network, disks, ZooKeeper are simulated.

The broker is the one that runs in production; only what it stands on differs. A seed draws the
cluster and its faults; the same seed gives the same run, event for event.
"""
