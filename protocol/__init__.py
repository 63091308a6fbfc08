"""Bytes to typed messages and back: the Kafka wire protocol, record batches, error codes.

Not here: sockets, files, time, chance. Everybody above may import it; it imports nothing of ours.
Start reading at `protocol.messages.produce` (what a declaration looks like), then `protocol.fields`,
`protocol.schema` and `protocol.compiler` (how it becomes codecs), then `protocol.records`.
"""
