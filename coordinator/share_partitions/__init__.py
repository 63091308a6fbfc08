"""What a share group does with the records of one partition (KIP-932), as its leader decides it.

Records from the start offset to the end offset are in flight: available again, acquired by a
member for a while, or finished (acknowledged or archived) and waiting for those before them. What
is kept is one entry for each range of offsets that share a state, so that a record costs nothing of
its own. What was decided is stored through the share coordinator (`coordinator.share_state`) before
it is told; what was acquired is not stored, and comes again when another broker leads.

Knows no logs, members or sessions: the fetched batches, the time and the settings are handed in.
Start reading at `record_range` (states and transitions), then `in_flight`, `acquisition` and
`acknowledgement`. May import what `coordinator` may; only the broker imports it.
"""
