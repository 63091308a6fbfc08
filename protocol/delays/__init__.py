"""Records that are delivered later (`delivery.delay.enable`): what stands in headers and batches.

`delay_headers` reads what a producer asks for, `delayed_batch` puts what it sent into a waiting
batch; `waiting_batch` and `delivered_batch` are what a log holds. Pure, as all of `protocol`.
"""
