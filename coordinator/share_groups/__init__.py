"""Share groups (KIP-932), whose members share the records of partitions.

Decided and replayed as consumer groups are, and simpler: several members may have one partition, so
nobody waits for anybody, and a member has its part of the target assignment with its next
heartbeat. A partition is assigned only once its state has been initialised at the share
coordinator (`coordinator.share_state`); which ones have been, the group stores. The broker carries
that out: it asks for what is to be initialised, and tells what became of it.

Start reading at `group`, then `heartbeats` and `initialisation`. May import what `coordinator` may;
only `coordinator.shard` and the broker import it.
"""
