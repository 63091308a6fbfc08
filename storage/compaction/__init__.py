"""Log compaction: of each key the last record stays, and aborted records are removed.

What it is: Apache Kafka's cleaner, in three parts. `choice` decides which log is worth cleaning and
how far. `log_rewrite` reads the segments and writes the `.cleaned` files that replace them; it runs
in a process of its own (`worker`), because it looks at every record, and one interpreter does one
thing at a time. `swap` puts the new files in place of the old ones, in the broker.

What it is not: a scheduler. When to clean, in how many processes and what to do when one fails is
in `broker.maintenance.log_cleaner`.

Imported by the broker and by `storage` itself; `worker` is started (`__main__`), never imported.
Start reading in `log_rewrite`, then `batch_filter`.
"""
