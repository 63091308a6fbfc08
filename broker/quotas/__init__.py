"""Quotas of clients: what they may use, what they have used, and how long they have to rest.

Pure: who calls says what time it is. Limits come from `/config` in the metadata store; what is done
about a client that exceeds one is decided in `broker.requests.request_meter`. Rooms above the
network may import this, and the network itself for the connections of addresses. Start with
`client_quotas`.
"""
