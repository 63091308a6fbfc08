"""Consumer groups of the newer protocol (KIP-848), in which the coordinator assigns partitions.

Decided and replayed as classic groups are. Stored are the group's epoch, which grows with each
change of members, subscriptions or topics; the target assignment of one such epoch; and for each
member its subscription and its current assignment. A heartbeat moves its member one step towards
the target: first it revokes partitions assigned to others, then it gets free ones. A partition has
one owner at a time because it is not assigned before its owner has released it.

Start reading at `group`, then `reconciliation` and `heartbeats`. May import what `coordinator` may;
only `coordinator.shard` and the broker import it.
"""
