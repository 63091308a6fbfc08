"""Avro, JSON Schema and Protobuf: parsing, and whether one schema reads what another wrote.

Nothing here knows subjects or HTTP; `registration` is what imports it. Start at `schema_type`.
"""
