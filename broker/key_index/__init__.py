"""Looking up records by key or by id: an HTTP endpoint, its clients' command line, and the work.

`python -m broker.key_index` is the command line. Start reading in `lookups`. The endpoint shows
what waits, too (`waiting_lookups`).
"""
