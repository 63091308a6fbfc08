"""Users and certificates for tests, and how brokers and clients of every make are told of them.

`realm` has them, `listeners` secures brokers with them, `access` has what each client is given.
"""
