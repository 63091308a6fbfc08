"""What protects listeners, and how they change while the broker runs.

`protections.py` makes their TLS and SASL, at the start and later; `changes.py` opens, moves and
closes them when `listeners` is altered. The addresses of the start are taken in
`broker.startup.addresses`.
"""
