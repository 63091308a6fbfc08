"""The running server: sockets, tasks, clocks, timers, and the wiring of the packages below.

No package imports it. Start reading at `broker.app` and `broker.startup.parts` (the parts of a
broker), then follow a request: `broker.network.connection`, `broker.requests.dispatch`,
`broker.handlers.records.produce`, `broker.partitions.partition`.
"""
