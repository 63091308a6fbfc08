"""One replica's log, in parts: offsets, files, rolls, flushes, truncation, retention, reads.

`log` puts them together; a part knows the parts it needs, and never the log.
"""
