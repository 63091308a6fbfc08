"""State of share-partitions, kept in a log: the delivery of records to share groups (KIP-932).

One partition of `__share_group_state` is one shard, decided and replayed as `coordinator.shard` is.
Stored for a share-partition, that is for a group and a partition of a topic, are its start offset
and, in ranges of offsets, the delivery states and counts. Most changes are written as updates; now
and then, and when its state is initialised, a snapshot has the whole state, so that older records
can be deleted. Knows nothing of members or acquisition.

Start reading at `state`, then `shard`. May import what `coordinator` may; only the broker
imports it.
"""
