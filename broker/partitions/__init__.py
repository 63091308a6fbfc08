"""The partitions this broker holds: their logs, what waits for them, and the way to the controller.

`replicas` has them all and takes the controller's word; `partition` is one, on any broker. What
replication requires of it is decided in `broker.replication` and carried out here;
`alter_partition_sender` proposes in-sync sets. Fetching as a follower is `broker.replica_fetchers`.
"""
