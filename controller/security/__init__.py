"""Users in the metadata tree: their credentials, quotas and access control lists.

Paths and bytes are Apache Kafka's. Nothing here decides about a request; `broker.security` does.
"""
