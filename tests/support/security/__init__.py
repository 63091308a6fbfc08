"""Users and certificates for tests, in the configurations of brokers and clients of every make.

`realm` has them, `listeners` secures brokers with them, `access` has what each client is given.
"""
