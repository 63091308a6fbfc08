"""Hosts and addresses as the system has them: names looked up, zones numbered, sockets bound.

How addresses are written is in `config/listeners/addresses`.
"""
