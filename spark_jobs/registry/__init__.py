"""A schema registry: Confluent's REST interface over a compacted topic `_schemas`.

Records of the topic are in Confluent's format, so that either registry takes over from the other.
`schema_types` holds what differs between Avro, JSON Schema and Protobuf.

Nothing here knows Spark. The module `registry` is the job; the other jobs talk to a registry over
HTTP and import nothing of this package. Start reading at `subjects` (the state, replayed from the
topic), then `registration` (decisions), `schema_topic` (the log and the one writer at a time) and
`rest` (HTTP).
"""
