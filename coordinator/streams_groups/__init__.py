"""Streams groups (KIP-1071): the members are threads of a Kafka Streams application.

Decided and replayed as consumer groups are, but tasks are assigned. The first member sends the
application's topology, in subtopologies, each of which reads topics and keeps stores with
changelogs. A subtopology has one task for each partition of the largest of its source topics. The
coordinator checks that the topics exist and are partitioned alike, has the application's internal
topics created, and assigns the tasks: each is active at one member, and a task with stores may be
standby at members of other processes.

Start reading at `topology`, then `group`, `reconciliation` and `heartbeats`. May import what
`coordinator` may; only `coordinator.shard` and the broker import it.
"""
