"""Logs on disk: Apache Kafka's bytes, read and written without looking at single records.

What it is: the partitions of a broker as directories of segments, with everything Apache Kafka
keeps beside them (indexes, producer snapshots, leader epochs, checkpoints), so that a data
directory can move between Apache Kafka 3.9 and this broker in either direction.

What it is not: it knows no network, no event loop, no thread and no clock. Time is an argument, the
disk is `filesystem.FileSystem`, chance is a number handed in, and work that may block for long
(fsync, recovery) is offered as callables; the broker chooses the thread.

Who may import it: `broker`. It imports `protocol` and `config` only.

Where to start reading: `log.log` (one replica and its parts), then `log.segments` and
`segment.segment`, then `log.log_loader` (start-up and recovery) and `directory.directories` (all
logs of a broker).
"""
