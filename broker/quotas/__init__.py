"""Quotas of clients: limits, usage, and throttle times.

Pure: the caller passes the time. Limits come from `/config` in the metadata store; the reaction to
an exceeded one is in `broker.requests.request_meter`. Packages above the network may import this,
and the network itself for the connections of addresses. Start with `client_quotas`.
"""
