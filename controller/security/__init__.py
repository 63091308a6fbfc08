"""What the metadata tree says of users: their credentials, their quotas, what they may do.

Paths and bytes are Apache Kafka's. Nothing here decides about a request; `broker.security` does.
"""
