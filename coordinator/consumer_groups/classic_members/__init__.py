"""Members of a consumer group that speak the classic protocol, and conversion of groups.

    classic group   a member joins with the consumer protocol   → consumer group (`upgrade`)
    consumer group  the last member of the consumer protocol leaves → classic group (`downgrade`)

In between, JoinGroup, SyncGroup and Heartbeat take a classic member through the same reconciliation
as the heartbeats of other members: it joins again for each step, its generation is its member
epoch, and SyncGroup returns its current assignment. Start with `joins.py`.

Source: KIP-848, "Online Migration".
"""
