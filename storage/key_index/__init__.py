"""Index of the records of a key in a segment, for topics that ask for it.

What it is: a file beside each closed segment (`index_file` has its layout) that leads from the hash
of a key, or of the header `message-id`, to the few kilobytes of the log that may hold such a
record. `index_builder` builds it and `segment_search` uses it, or reads the segment without one;
both run in processes of their own (`worker`), as compaction does. Each hit is checked against the
record itself, so an index can only yield too much, and one that is damaged or of another log is
ignored.

What it is not: part of a log. Appends, reads, replication and recovery know its name and nothing
else, and Apache Kafka, which knows not even that, leaves the file in place.

Imported by the broker; `worker` is started, never imported. Start reading in `index_file`.
"""
