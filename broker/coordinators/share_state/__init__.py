"""The share coordinator at work: shards of `__share_group_state`, and how brokers ask for them.

Start with `store`, the port that leaders of partitions use.
"""
