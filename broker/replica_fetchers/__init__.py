"""The follower's side of replication at work: fetching from leaders, truncating, catching up.

`replica_fetchers` has a `fetcher` for each leader and a second one for replicas that lag far behind
(`leader_fetchers`); `out_of_range` asks a leader whose log ends before ours or begins after it.
Decides nothing about a log itself: that is the replica machine's, in `broker.replication`.
"""
