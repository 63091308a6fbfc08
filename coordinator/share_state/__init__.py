"""What share groups have consumed (KIP-932): the state of share-partitions, kept in a log.

One partition of `__share_group_state` is one shard, decided and replayed as `coordinator.shard` is.
What is stored for a share-partition, that is for a group and a partition of a topic: where it
starts, and in ranges of offsets what was delivered and how often. Most changes are written as
updates; now and then, and when its state begins anew, a snapshot says all of it, so that older
records can be deleted. Knows nothing of members, nor of who may fetch what.

Start reading at `state`, then `shard`. May import what `coordinator` may; only the broker
imports it.
"""
