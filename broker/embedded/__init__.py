"""Brokers inside the process of a test: started in milliseconds, mistreated at will, gone after it.

What users import stands in `broker.testing`, the pytest plugin in `broker.embedded.plugin`. A
broker here is the ordinary one (`broker.app`) on a machine of its own: a loop whose clock can be
turned, a disk that can be full, sockets on 127.0.0.1. Nothing of the process is changed for it: no
signal handler, no limit, no garbage collector, no working directory; two brokers in one process
know nothing of each other.

No other room of the broker may import this one. Start with `embedded_broker.py`, which sends what
it is told to `hosted_broker.py`, one broker through all its lives, wherever that is: on a thread,
on the caller's loop, or in another process.
"""
