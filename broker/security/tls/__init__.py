"""TLS: key and trust stores, contexts built from them, names in certificates, and the transport.

Start with `listener_tls` for accepted connections, `client_tls` for links to other brokers. Nothing
here knows connections or requests: `transport` puts TLS between any transport and any protocol.
Only modules that need TLS import this package, since `cryptography` takes a tenth of a second to
import.
"""
