"""Headers and batches of records that are delivered later (`delivery.delay.enable`).

`delay_headers` reads the delay that a producer requests, `delayed_batch` wraps the produced batch
in a waiting batch; `waiting_batch` and `delivered_batch` are the batches in a log. Pure, as all of
`protocol`.
"""
