"""Group coordination as a replicated state machine: its decisions, without storage and network.

A shard is one partition of `__consumer_offsets`. `handle_*` methods read its state and return a
response, or `Effects`: replies to give, records to append. `replay` changes the persisted state,
the same way for a record just appended and for one read back after a restart. Membership between
two rebalances (members that have joined or still wait) is soft state and lives in memory only; the
record of a generation is written when its leader sends the assignment.

Pure: no asyncio, sockets, threads, clocks or chance. Time is `now_ms`: as an argument
the wall clock's, for what is stored; deadlines go by that of the timers. These, member ids and
replies come through `coordinator.ports`. May import `protocol` and `config`; only `broker` imports
it. Transactions are coordinated in the same manner, in the package `transactions`.

Start reading at `states` (the state machine), then `group`, `rebalance` and `shard`.
"""
