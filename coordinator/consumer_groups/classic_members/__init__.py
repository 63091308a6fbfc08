"""Members that speak the classic protocol in a consumer group, and how a group changes its kind.

    classic group   a member joins with the consumer protocol   → consumer group (`upgrade`)
    consumer group  the last member of the consumer protocol is gone → classic group (`downgrade`)

In between, JoinGroup, SyncGroup and Heartbeat of a classic member are its way through the same
reconciliation that heartbeats take others through: it joins again for each step, its generation is
its member epoch, and what SyncGroup returns is what it owns. Start with `joins.py`.

Source: KIP-848, "Online Migration".
"""
