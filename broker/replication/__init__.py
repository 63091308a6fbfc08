"""Decisions of a replica: in-sync set, high watermark, truncation of a follower.

Pure: time and the log's offsets are arguments, and nothing here has an effect. The effects of a
decision are carried out by `broker.partitions`, which holds the logs. Start with `replica_machine`.
"""
