"""Formats of records: JSON, CSV, and Debezium's envelope in JSON; `formats` says what one is."""
