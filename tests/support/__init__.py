"""What the tests start and talk to: Apache's jars and tools, Apache's broker, and ours.

`jars` resolves Apache Kafka's published artifacts, `tools` runs its command-line classes,
`broker_process` is one running broker of any make, `apache` and `ours` say how each make is
started, `wire` speaks the few raw bytes that need no client. Nothing here asserts; tests do.
"""
