"""Common parts of consumer, share and streams groups: all kinds of group but the classic one.

Members have epochs. The group has one too, which grows with every change. The target assignment,
that of all members, belongs to one group epoch. A heartbeat takes its member one step towards its
part of the target. Apache Kafka calls such groups modern. This package serves all three kinds; a
kind's own rules are in its package.

Start reading at `group`, then `kind_shard`. May import what `coordinator` may; the packages of the
kinds, `coordinator.shard_state` and the broker import it.
"""
