"""A machine with several brokers: one supervisor, which starts, watches and restarts them.

A broker is one event loop, so a machine with many cores runs several. To clients, and to ZooKeeper,
they are ordinary brokers; each derives its configuration from the one property file
(`config.machine.processes`) and holds a lock in the state directory for as long as it lives
(`member_lock`). The supervisor knows them by the lock alone: it may die, and the next one takes
over.

Only `broker.__main__` imports it, for the lock. Start reading at `supervisor`.
"""
