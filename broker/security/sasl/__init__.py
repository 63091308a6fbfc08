"""SASL at the side of the server: authentication of a client.

Pure: a conversation is given frames and returns the answers. Sockets, delays and threads are with
`broker.network.authentication`. Start with `conversation.py`, then `mechanism.py`.
"""
