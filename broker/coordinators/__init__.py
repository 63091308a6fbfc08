"""Where the pure coordinators meet the broker: logs, timers, replies, leadership.

`groups` is the service that handlers call; a `local_shard` is one partition of `__consumer_offsets`
that this broker leads; `offsets_log` turns its records into batches and back.
"""
