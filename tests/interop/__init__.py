"""Stock clients and Apache Kafka's own tools against a running broker.

The broker is ours; with `AGAINST=apache` in the environment it is Apache Kafka 4, which is
how the tests themselves are shown to be right. `clients/` gives each Python client the same few
verbs; everything that differs between them stays there. `workloads/` are clients at work for tests
that kill somebody. The tests lie in rooms by what they are about.
"""
