"""Where in a segment the records of a key are, for topics that ask for it.

What it is: a file beside each closed segment (`index_file` draws it) that leads from the hash of a
key, or of what the header `message-id` holds, to the few kilobytes of the log in which such a
record may stand. `index_builder` makes it and `segment_search` uses it, or reads the segment
without one; both run in processes of their own (`worker`), as compaction does. What is found is
always checked against the record itself, so that an index can be wrong about too much only, and
one that is damaged or of another log is as good as none.

What it is not: part of a log. Nothing that appends, reads, replicates or recovers knows of it but
for its name, and Apache Kafka, which does not know that either, leaves it where it is.

Imported by the broker; `worker` is started, never imported. Start reading in `index_file`.
"""
