"""The follower's side of replication: fetching from leaders, truncating, catching up.

`replica_fetchers` has one `fetcher` for each leader; `truncation` cuts a log to a prefix of its
leader's, and `out_of_range` handles a leader whose log ends before or begins after. What a leader
knows of its followers is in `broker.partitions`.
"""
