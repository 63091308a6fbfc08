"""What a replica decides: who is in sync, what is committed, where a follower truncates.

Pure: time and the log's offsets are arguments, and nothing here does anything. What follows from
a decision is done by `broker.partitions`, which holds the logs. Start with `replica_machine`.
"""
