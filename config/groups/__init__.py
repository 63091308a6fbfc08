"""The configuration of single groups (GROUP resources): rows, their limits, what they may be.

Start with `group.py`.
"""
