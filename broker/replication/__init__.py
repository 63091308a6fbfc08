"""How replicas of one partition stay the same: what a leader knows of its followers, and following.

A leader learns how far a follower is from the offsets it fetches (`followers`); from that follow
the high watermark and who is in sync (`in_sync`). `leading` does what they decide. A follower
fetches from its leader (`fetcher`), truncates where their histories part, and appends.
"""
