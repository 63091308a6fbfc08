"""Streams groups (KIP-1071): the members are threads of a Kafka Streams application.

Decided and replayed as consumer groups are, but what is assigned are tasks. The first member says
what the application computes: its topology, in subtopologies, each of which reads topics and keeps
stores with changelogs. As many partitions as the largest of its source topics has, so many tasks
does a subtopology have. The coordinator checks that the topics are there and partitioned alike, has
those created that the application needs for itself, and assigns the tasks: each is active at one
member, and a task with stores may be standby at members of other processes.

Start reading at `topology`, then `group`, `reconciliation` and `heartbeats`. May import what
`coordinator` may; only `coordinator.shard` and the broker import it.
"""
