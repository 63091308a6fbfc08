"""SASL on connections: frames go to a gate until the client is authenticated.

Decisions are in `broker.security.sasl`; here are the connection, the delay of a refusal and the end
of a session. Start with `gate.py`.
"""
