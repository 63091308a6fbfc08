"""Delivery of delayed records (`delivery.delay.enable`), by the leader of their partition.

The log determines the waiting and the delivered records; all state here is derived from it and
discarded when another broker leads. `deliveries` begins and ends the work on a partition with its
leadership, `partition_delivery` does it, `followed_log` and `waiting_records` follow the log,
`waiting_queue` holds the next records and puts the rest into files (`sorted_run`), `sources` and
`due_batch` build a batch of due records. Dead letters of retry topics are sent on from here:
`relay_plan` decides, `dead_letter_relay` and `dead_letter_sender` execute. `waiting_list` shows
waiting records to operators, and `__main__` is their command line. Decision:
docs/decisions/0038-delayed-records-in-their-own-log.md.
"""
