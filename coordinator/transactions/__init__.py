"""Transaction coordination as a replicated state machine: its decisions, without their storage.

A shard is one partition of `__transaction_state`. A request or a timer is decided on the present
state, giving records, answers, and transactions whose markers must be written once the records are
committed; `replay` changes the state, the same way for a record just appended and for one read back
after a restart. All of the state but one number (`Transaction.last_epoch`) is in the records, so
that after a crash at any moment the coordinator continues from the end of its log.

Markers are not written here: the broker writes them, and calls `handle_markers_written`.

Pure, and may import what `coordinator` may. Start reading at `states` (the state machine), then
`transaction` (the steps of a transaction) and `shard`.
"""
