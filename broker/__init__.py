"""The running server: sockets, tasks, clocks, timers, and the wiring of the packages below.

Nobody imports it. Start reading at `broker.app` (what a broker consists of), then follow a request:
`broker.connection`, `broker.dispatch`, `broker.handlers.produce`, `broker.partition`.
"""
