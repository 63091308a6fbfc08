"""OAUTHBEARER: clients that present a token of an identity provider (RFC 7628, KIP-255, KIP-768).

`mechanism.py` is the SASL mechanism; it has tokens checked by `jwt_validation.py`, against keys
that `jwks.py` reads and `jwks_endpoint.py` keeps fresh, or by `unsecured.py`, if they are unsigned.
"""
