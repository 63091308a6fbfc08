"""Who a client is, and what it may do.

Connections (`broker.network`) and handlers use it; it knows neither of them. What is decided here
is pure: sockets, the metadata store and the clock are handed in.
"""
