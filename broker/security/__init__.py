"""Authentication and authorization of clients.

Connections (`broker.network`) and handlers use it; it knows neither of them. Decisions here are
pure: sockets, the metadata store and the clock are handed in.
"""
