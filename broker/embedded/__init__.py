"""Brokers inside the process of a test: started in milliseconds, open to faults, gone after it.

Users import `broker.testing`, or the pytest plugin in `broker.embedded.plugin`. A broker here is
the ordinary one (`broker.app`) on a machine of its own: a loop whose clock can be advanced, a disk
that can be full, sockets on 127.0.0.1. Nothing of the process is changed for it: no signal handler,
no limit, no garbage collector, no working directory; two brokers in one process are independent.

No other package of the broker may import this one. Start with `embedded_broker.py`, which passes
calls to `hosted_broker.py`, one broker through all its lives, on a thread, on the caller's loop, or
in another process.
"""
