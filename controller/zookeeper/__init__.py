"""ZooKeeper as the metadata store: kazoo behind `controller.metadata_store.store.MetadataStore`.

Only this package knows kazoo. Its threads end in `session`, which hands everything to the event
loop; `store` speaks the port's language; `address` reads `zookeeper.connect`. Imported only
when `zookeeper.connect` is set. Start with `store`.
"""
