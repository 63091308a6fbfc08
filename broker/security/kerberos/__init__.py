"""GSSAPI: clients that show a Kerberos ticket (RFC 4752).

`mechanism.py` is what SASL calls, `acceptor.py` the way to the library, which is an extra
(`pip install kafka-broker-python[kerberos]`), and `principal_names.py` says who a ticket is for us.
"""
