"""Delivery of one partition's records to a share group (KIP-932), as decided by its leader.

Records from the start offset to the end offset are in flight: available again, acquired by a
member, or finished (acknowledged or archived) and waiting for those before them. One entry is kept
for each range of offsets in the same state, so that a single record costs nothing. Decisions are
stored through the share coordinator (`coordinator.share_state`) before they are reported;
acquisitions are not stored, and these records are delivered again when another broker leads.

Knows no logs, members or sessions: the fetched batches, the time and the settings are handed in.
Start reading at `record_range` (states and transitions), then `in_flight`, `acquisition` and
`acknowledgement`. May import what `coordinator` may; only the broker imports it.
"""
