"""Record batches, format 2: the unit that is produced, stored, replicated and fetched.

What it is: reading and patching the 61-byte header of a batch (`batch`), checking what a client
produced (`validation`), the records inside (`record`, `builder`), compression (`compression`), and
end-transaction markers (`control`). Bytes in, values out; nothing here keeps state.
What it is not: a log (see `storage`) or producer state, which need more than one batch to decide.
Any package above `protocol` may import it. Start reading in `batch`, which draws the layout.
"""
