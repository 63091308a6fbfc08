"""SASL at the side of the server: who a client is.

Pure: a conversation is given frames and returns what to send. Sockets, delays and threads are with
`broker.network.authentication`. Start with `conversation.py`, then `mechanism.py`.
"""
