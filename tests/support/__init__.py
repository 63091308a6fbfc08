"""Programs that the tests start and talk to: Apache's jars and tools, Apache's broker, and ours.

`jars` resolves Apache Kafka's published artifacts, `tools` runs its command-line classes,
`wire` speaks the few raw bytes that need no client. In `brokers/`, `broker_process` is one running
broker of any make, `apache` and `ours` say how each make is started. Nothing here asserts; tests
do.
"""
