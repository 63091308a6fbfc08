"""What a replica decides: who is in sync, what is committed, where a follower truncates.

Pure: time and the log's offsets are arguments, and nothing here does anything. What follows from
a decision is done by `broker.partitions` on the leader and by `broker.replica_fetchers` on a follower.
"""
