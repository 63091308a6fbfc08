"""Where the pure coordinators meet the broker: logs, timers, replies, leadership.

`shards` is what groups and transactions have in common, a table of shards that come and go; a
`shard_runtime` is one of them at work on the log of its partition, and `record_batches` turns its
records into batches and back. `groups` and `transactions` are the services that handlers call. A
`marker_sender` has markers written for transactions that are decided, `markers` writes them.
"""
