"""Share groups in the partitions that this broker leads (KIP-932): sessions, records, locks.

`share_partitions` has the led ones, and ends them with leadership; a `led_partition` is one group
in one partition: its records in flight (decided in `coordinator.share_partitions`), the timer of
their locks, and the changes that wait to be stored (`state_writer`). `share_sessions` remembers
which partitions each member reads. Handlers use it; it knows logs, but no requests.
"""
