"""Share groups (KIP-932), whose members share the records of partitions.

Decided and replayed as consumer groups are, and simpler: several members may have one partition, so
no member waits for another, and each gets its part of the target assignment with its next
heartbeat. A partition is assigned only once its state has been initialised at the share coordinator
(`coordinator.share_state`); the group stores the initialised ones. The broker carries that out: it
requests the initialisation, and reports the result.

Start reading at `group`, then `heartbeats` and `initialisation`. May import what `coordinator` may;
only `coordinator.shard` and the broker import it.
"""
