"""Metrics over HTTP, in Prometheus' text format, if `metrics.port` is set.

Without it nothing here is imported. With it, requests are counted in plain integers
(`request_counts`), and everything else is read from the broker's parts at each scrape (`collector`,
`partitions`), on a thread of the endpoint's own (`endpoint`).

A metric equivalent to one of Apache Kafka's has the name that Prometheus' bridge from JMX usually
gives that one. Who may import it: the start (`broker.startup`).
"""
