"""The archive: a topic as Parquet files, written, read back, compacted, exported, compared."""
