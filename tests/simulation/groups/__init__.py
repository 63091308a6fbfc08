"""Groups of all kinds under faults: classic, consumer, streams and share groups, and their members.

`population.py` has members come, go, sleep and die; `workload.py` puts everything together. What
must hold is in `tests.simulation.checks`: `owners` and `share_deliveries`.
"""
