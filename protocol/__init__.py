"""Bytes to typed messages and back: the Kafka wire protocol, record batches, error codes.

Not here: sockets, files, time, chance. Everybody above may import it; it imports nothing of ours.
Start reading at `protocol.messages.produce` (what a declaration looks like), `protocol.fields`,
`protocol.schema`, `protocol.compiler` and `protocol.decoder_source` (how it becomes codecs), then
`protocol.headers` and `protocol.records`.
"""
