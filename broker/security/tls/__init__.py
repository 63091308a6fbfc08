"""TLS: key and trust stores, contexts made of them, names in certificates, and the transport.

Start with `listener_tls` for what comes in, `client_tls` for links to other brokers. Nothing here
knows connections or requests: `transport` puts TLS between any transport and any protocol. Only
what needs TLS imports this package, since `cryptography` takes a tenth of a second to import.
"""
