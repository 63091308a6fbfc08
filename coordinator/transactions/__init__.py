"""Transaction coordination as a replicated state machine: what it decides, not how it is stored.

A shard is one partition of `__transaction_state`. A request or a timer is decided on the state as
it is, giving records, answers, and transactions whose markers must be written once the records are
committed; `replay` changes the state, the same way for a record just appended and for one read back
after a restart. All of the state is in the records but one number (`Transaction.last_epoch`), so
that a coordinator that is killed at any moment goes on where its log ends.

Markers are not written here: whoever does reports back with `handle_markers_written`.

Pure, and may import what `coordinator` may. Start reading at `states` (the state machine), then
`transaction` (what each step does to the data) and `shard`.
"""
