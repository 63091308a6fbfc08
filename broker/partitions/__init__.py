"""Partitions that this broker holds: appends, high watermark, the leader's side of replication.

A `partition` is one replica with its log and its waiters; `replicas` has all of them. A leader
learns how far a follower is from the offsets it fetches (`followers`); the high watermark and the
in-sync set follow from that (`in_sync`), `partition_leader` acts on it, and
`alter_partition_sender` asks the controller.
"""
