"""Cluster metadata: topics, partition leaders, and the election of the controller.

The controller decides; brokers obey. Every fact lives in a tree of znodes behind the port
`controller.metadata_store.store.MetadataStore`, in the paths and bytes that Apache Kafka 3.9
uses in ZooKeeper mode, whether the tree is a ZooKeeper ensemble or a file beside the logs of a
single broker.

Not here: sockets, logs, clocks, chance. Requests to brokers leave through
`controller.ports.BrokerChannels`; time and chance are handed in.

Imported by `broker` only; imports `protocol` and `config`. Start reading in `store` (the port),
`znodes` (paths and bytes), then `controller` (the events).
"""
