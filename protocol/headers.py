"""The few bytes in front of every request and response body.

A request begins with its API key, version and correlation id; header v1 adds the client id and v2
(flexible versions of the request, KIP-482) tagged fields, which are skipped. A response begins with
the correlation id; header v1 adds an empty tag section.

    request   | API key int16 | version int16 | correlation id int32 | client id | tags |
    response  | correlation id int32 | tags |

Three exceptions, all here: the client id keeps its int16 length even in v2; ControlledShutdown v0
has header v0, without a client id; the response to ApiVersions always has header v0, because the
client that reads it does not yet know the broker's versions (KIP-511).

The table of flexible versions repeats the declarations in `protocol.messages`, so that a header can
be read without importing a message; a test keeps the two equal.
"""

from __future__ import annotations

import functools
import struct as structs
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.api_keys import ApiKey
from protocol.wire import SHORT, Buffer, DecodeError, skip_tags, text_of_string

if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER: Final = 32768

_FIRST_FLEXIBLE: Final[dict[ApiKey, int]] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.LEADER_AND_ISR: 4,
    ApiKey.STOP_REPLICA: 2,
    ApiKey.UPDATE_METADATA: 6,
    ApiKey.CONTROLLED_SHUTDOWN: 3,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 6,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.SASL_HANDSHAKE: _NEVER,
    ApiKey.API_VERSIONS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 3,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_ACLS: 2,
    ApiKey.CREATE_ACLS: 2,
    ApiKey.DELETE_ACLS: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 2,
    ApiKey.SASL_AUTHENTICATE: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.CREATE_DELEGATION_TOKEN: 2,
    ApiKey.RENEW_DELEGATION_TOKEN: 2,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.OFFSET_DELETE: _NEVER,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.DESCRIBE_QUORUM: 0,
    ApiKey.ALTER_PARTITION: 0,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.FETCH_SNAPSHOT: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.UNREGISTER_BROKER: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.ALLOCATE_PRODUCER_IDS: 0,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 0,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
    ApiKey.PUSH_TELEMETRY: 0,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
    ApiKey.SHARE_GROUP_HEARTBEAT: 0,
    ApiKey.SHARE_GROUP_DESCRIBE: 0,
    ApiKey.SHARE_FETCH: 0,
    ApiKey.SHARE_ACKNOWLEDGE: 0,
    ApiKey.ADD_RAFT_VOTER: 0,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE: 0,
    ApiKey.WRITE_SHARE_GROUP_STATE: 0,
    ApiKey.DELETE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 0,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: 0,
    ApiKey.UNREGISTER_CONTROLLER: 0,
}
"""The first version of each request, and of its response, that is flexible."""

_CONTROLLED_SHUTDOWN: Final = 7
_UNPACK_V0: Final = structs.Struct(">hhi").unpack_from
_UNPACK_V1: Final = structs.Struct(">hhih").unpack_from
_UNPACK_LENGTH: Final = structs.Struct(">h").unpack_from
_V0_BYTES: Final = 8
_V1_BYTES: Final = 10
"""Up to the first character of the client id."""

_PACK_SIZED_PLAIN: Final = structs.Struct(">ii").pack
_PACK_SIZED_TAGGED: Final = structs.Struct(">iix").pack
_PACK_REQUEST: Final = structs.Struct(">ihhih").pack
_PLAIN_BYTES: Final = 4
_TAGGED_BYTES: Final = 5
_FLEXIBLE_REQUEST: Final = {int(key): first for key, first in _FIRST_FLEXIBLE.items()}
_FLEXIBLE_RESPONSE: Final = _FLEXIBLE_REQUEST | {int(ApiKey.API_VERSIONS): _NEVER}


class UnknownApiKeyError(DecodeError):
    """A request whose API key no message declares; the only answer is to close the connection.

    `api_key`, `api_version` and `correlation_id` are those of the request, for the log line.
    """

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"unknown API key {api_key} (version {api_version})")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class RequestHeader(NamedTuple):
    """Header of a request. `api_version` is as sent: the broker may not support it."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_make_header: Final[Callable[[tuple[int, int, int, str | None]], RequestHeader]] = (
    functools.partial(tuple.__new__, RequestHeader)
)


def parse_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """Read the header of a frame (without its length); returns it and the position of the body.

    An ApiVersions request of any version is read, because it must be answered. Raises
    UnknownApiKeyError, or DecodeError when the frame is damaged.
    """
    # The usual case is written out: a short client id, and no tags. Whatever does not fit, because
    # it is rare or because it is damaged, is read again by _parse_unusual.
    try:
        api_key, api_version, correlation_id, length = _UNPACK_V1(buffer)
        position = _V1_BYTES + length
        if length < 0 or (not api_version and api_key == _CONTROLLED_SHUTDOWN):
            return _parse_unusual(buffer)
        if api_version >= _FLEXIBLE_REQUEST[api_key]:
            if buffer[position]:
                return _parse_unusual(buffer)
            position += 1
        client_id = SHORT[length](buffer, _V1_BYTES)[0].decode()
    except (structs.error, LookupError, UnicodeDecodeError):
        return _parse_unusual(buffer)
    return _make_header((api_key, api_version, correlation_id, client_id)), position


def _parse_unusual(buffer: Buffer) -> tuple[RequestHeader, int]:
    """Parse any header, slowly; DecodeError if it is cut short."""
    try:
        api_key, api_version, correlation_id = _UNPACK_V0(buffer)
        if api_key not in _FLEXIBLE_REQUEST:
            raise UnknownApiKeyError(api_key, api_version, correlation_id)
        client_id, position = None, _V0_BYTES
        if api_version != 0 or api_key != _CONTROLLED_SHUTDOWN:
            client_id, position = _client_id(buffer)
        if api_version >= _FLEXIBLE_REQUEST[api_key]:
            position = skip_tags(buffer, position + 1, buffer[position])
    except (structs.error, IndexError) as error:
        raise DecodeError(f"request header is cut short: {len(buffer)} bytes") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def _client_id(buffer: Buffer) -> tuple[str | None, int]:
    (length,) = _UNPACK_LENGTH(buffer, _V0_BYTES)
    if length == -1:
        return None, _V1_BYTES
    end = _V1_BYTES + length
    if not _V1_BYTES <= end <= len(buffer):
        raise DecodeError(f"client id cannot have the length {length}")
    return text_of_string(bytes(buffer[_V1_BYTES:end]), "client id"), end


def response_front_packer(api_key: int, api_version: int) -> Callable[[int, int], bytes]:
    """Return the packer of a response's front: size (header included) and correlation id."""
    is_tagged = api_version >= _FLEXIBLE_RESPONSE[api_key]
    return _PACK_SIZED_TAGGED if is_tagged else _PACK_SIZED_PLAIN


def request_front(
    correlation_id: int, api_key: int, api_version: int, client_id: bytes, body_bytes: int
) -> bytes:
    """The size of a whole request and its header, for a broker that asks another.

    `client_id` is UTF-8. Not for ControlledShutdown v0, which has another header.
    """
    tags = b"\0" if api_version >= _FIRST_FLEXIBLE[ApiKey(api_key)] else b""
    size = _V1_BYTES + len(client_id) + len(tags) + body_bytes
    front = _PACK_REQUEST(size, api_key, api_version, correlation_id, len(client_id))
    return front + client_id + tags


def response_header_bytes(api_key: int, api_version: int) -> int:
    """Size of the response header, in bytes."""
    return _TAGGED_BYTES if api_version >= _FLEXIBLE_RESPONSE[api_key] else _PLAIN_BYTES
