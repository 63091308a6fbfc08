"""Handlers of requests about records: Produce, Fetch, ListOffsets, DeleteRecords."""
