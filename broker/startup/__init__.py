"""How a broker starts: what lies on disk is opened. Start reading at `disk`.

Only `broker.app` imports it, and `__main__` for the error of a start that is refused.
"""
