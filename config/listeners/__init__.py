"""Where the broker listens, with what settings, and how log-ins are written (JAAS). Pure.

What it is: the keys of listeners, read together. What it is not: a socket. Start in `endpoints`.
"""
