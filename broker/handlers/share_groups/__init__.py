"""Requests of share group members to partition leaders: ShareFetch and ShareAcknowledge."""
