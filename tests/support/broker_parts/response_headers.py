"""The bytes in front of a response body, for tests that answer as a broker does."""

from __future__ import annotations

from protocol.headers import response_front_packer, response_header_bytes

SIZE_BYTES = 4


def response_header(correlation_id: int, api_key: int, api_version: int) -> bytes:
    """The header alone, as a response in `api_version` has it."""
    return response_front(correlation_id, api_key, api_version, 0)[SIZE_BYTES:]


def response_front(correlation_id: int, api_key: int, api_version: int, body_bytes: int) -> bytes:
    """The size of a whole response and its header, for a body of that size."""
    size = response_header_bytes(api_key, api_version) + body_bytes
    return response_front_packer(api_key, api_version)(size, correlation_id)
