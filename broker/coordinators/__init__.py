"""Runs the pure coordinators in the broker: on logs, with timers, replies and leadership.

`shards` is shared by groups and transactions: a table of shards that come and go with leadership. A
`shard_runtime` runs one of them on the log of its partition, and `record_batches` turns its records
into batches and back. `groups` and `transactions` are the services that handlers call. A
`marker_sender` sends the markers of decided transactions to the partition leaders, and `markers`
appends them.
"""
