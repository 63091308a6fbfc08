"""Security of listeners, and their changes while the broker runs.

`protections.py` creates their TLS and SASL, at the start and later; `changes.py` opens, moves and
closes them when `listeners` is altered. The addresses of the start are bound in
`broker.startup.addresses`.
"""
