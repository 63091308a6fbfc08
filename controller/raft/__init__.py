"""The Raft replica of `__cluster_metadata` that a broker runs: an observer, which never votes.

    state, answers, time ---> Observer ---> the next request, and effects

The observer finds the leader of the quorum through bootstrap servers, fetches what comes next,
cuts its log where the histories part, and downloads a snapshot where the leader's log begins later
than its own ends (KIP-595, KIP-630, KIP-853; `KafkaRaftClient` in Apache Kafka). What it decides
is returned, as a request or as effects; its owner sends and does, in their order, before it asks
again.

Not here: files, sockets, tasks, clocks and the metadata image. The package imports `protocol` only.
The driver is `broker.metadata_log`, the files are `storage.metadata_log`.

Start reading in `states` and `observer`, then `log_view`; `effects` lists what its owner has to do.
"""
