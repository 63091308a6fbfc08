"""OAUTHBEARER: clients that show a token of an identity provider (RFC 7628, KIP-255, KIP-768).

`mechanism.py` is what SASL calls; it has tokens checked by `jwt_validation.py`, against keys that
`jwks.py` reads and `jwks_endpoint.py` keeps fresh, or by `unsecured.py`, if nobody signs them.
"""
