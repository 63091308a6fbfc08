"""The partitions on this broker: their logs, their waiters, and AlterPartition to the controller.

`replicas` has them all and applies the controller's instructions; `partition` is one, on any
broker. Decisions of replication are made in `broker.replication` and carried out here;
`alter_partition_sender` proposes in-sync sets. Fetching as a follower is `broker.replica_fetchers`.
"""
