"""GSSAPI: clients that present a Kerberos ticket (RFC 4752).

`mechanism.py` is the SASL mechanism, `acceptor.py` the interface to the library, which is an extra
(`pip install kafka-broker-python[kerberos]`), and `principal_names.py` maps principals to users.
"""
