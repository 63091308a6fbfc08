"""Metrics over HTTP, in Prometheus' text format, when `metrics.port` asks for them.

Without it nothing here is imported. With it, requests are counted in plain integers
(`request_counts`), and everything else is read from the broker's parts when somebody scrapes
(`collector`, `partitions`), on a thread of the endpoint's own (`endpoint`).

Where a metric means what one of Apache Kafka's means, it has the name that Prometheus' bridge
from JMX usually gives that one. Who may import it: the start (`broker.startup`).
"""
