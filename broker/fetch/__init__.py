"""Fetch requests: sessions, reads, delayed answers, batching for followers."""
