"""The configuration of single groups (GROUP resources): rows, limits and checks.

Start with `group.py`.
"""
