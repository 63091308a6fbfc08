"""Delivery of records that wait (`delivery.delay.enable`), by the leader of their partition.

What waits, and what has been delivered, is what the log says; everything here is derived from it
and thrown away when another broker leads. `deliveries` begins and ends the work on a partition with
its leadership, `partition_delivery` does it, `followed_log` and `waiting_records` follow the log,
`waiting_queue` holds what is next and puts the rest into files (`sorted_run`), `sources` and
`due_batch` make a batch of what is due. Dead letters of retry topics go on from here: `relay_plan`
decides, `dead_letter_relay` and `dead_letter_sender` do. `waiting_list` shows operators what waits,
and `__main__` is their command line.
Decision: docs/decisions/0038-delayed-records-in-their-own-log.md.
"""
