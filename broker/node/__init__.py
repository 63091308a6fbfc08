"""A machine with several brokers: one supervisor, which starts, watches and restarts them.

A broker is one event loop, so a machine with many cores runs several. To clients, and to ZooKeeper,
they are ordinary brokers; each goes by what it makes of the one property file
(`config.machine.processes`) and holds a lock in the state directory for as long as it lives
(`member_lock`). The lock is all that the supervisor knows them by: it may die, and the next one
goes on where it was.

Nobody imports it but `broker.__main__`, for the lock. Start reading at `supervisor`.
"""
