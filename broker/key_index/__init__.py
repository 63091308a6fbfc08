"""Look-ups of records by key or by id: an HTTP endpoint, its command line, and the search.

`python -m broker.key_index` is the command line. Start reading in `lookups`. The endpoint also
shows waiting records (`waiting_lookups`).
"""
