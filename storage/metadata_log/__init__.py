"""The directory `__cluster_metadata-0` of a KRaft node, as Apache Kafka lays it out.

    00000000000000000000.log …                 an ordinary log: `storage.log`
    00000000000000001234-0000000005.checkpoint   a snapshot: end offset, epoch of the last record
    ….checkpoint.part, ….checkpoint.deleted      being written; to be removed
    quorum-state                                 the newest epoch and its leader

It may lie in a log directory, which passes it by. The records are a matter of
`protocol.metadata_log`, and the epochs and leaders one of `controller.raft`: here are only files.

Start reading in `metadata_log`, then `snapshot_files`.
"""
