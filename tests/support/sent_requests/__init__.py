"""A request of each API about given topics, groups and transactional ids, in any version.

What they ask for has the same outcome on every broker that is in the same state. Start with
`about.py`; `makers.py` has all of them.
"""
