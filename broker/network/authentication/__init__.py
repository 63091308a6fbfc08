"""SASL on connections: frames go to a gate until the client is authenticated.

What is decided is in `broker.security.sasl`; here are the connection, the delay of a refusal and
the end of a session. Start with `gate.py`.
"""
