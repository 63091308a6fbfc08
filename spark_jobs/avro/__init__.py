"""Avro records: framed as Confluent's serialisers do it, with their schemas in a registry.

A value is the byte 0, the id of its writer's schema in four bytes, and the record. It is read into
the reader's schema, the latest of its subject when the job starts, and goes on as JSON text: all
that definitions say about JSON holds for it. Definitions import this package; it imports none of
them. Start reading at `reader_schema`, then `decoder` (values) and `decoded_rows` (Spark).
"""
