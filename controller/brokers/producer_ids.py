"""Blocks of producer ids, each allocated once: a compare-and-set on one node."""

from __future__ import annotations

from controller.metadata_store.store import BadVersionError, MetadataStore, Operation, SetData
from controller.znodes import PRODUCER_ID_BLOCK, decode_json, encode_json, malformed
from protocol.errors import ApiError, ErrorCode

BLOCK_SIZE = 1000
"""Fixed as in Apache Kafka (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`)."""
LAST_ID = 2**63 - 1
WRITE_ATTEMPTS = 20
"""Number of attempts against other brokers that want a block at the same moment.

Fixed: each attempt fails only if another broker's succeeded, and the client asks again."""


async def allocate_producer_ids(store: MetadataStore, broker_id: int) -> range:
    """Allocate the next block for a broker; ids that it does not use are lost. Raises ApiError."""
    for _ in range(WRITE_ATTEMPTS):
        node = await store.get(PRODUCER_ID_BLOCK)
        newest = decode_producer_id_block(node.data)
        start = 0 if newest is None else newest.stop
        if start > LAST_ID - BLOCK_SIZE:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
        block = range(start, start + BLOCK_SIZE)
        try:
            data = encode_producer_id_block(broker_id, block)
            await store.set(PRODUCER_ID_BLOCK, data, node.version)
        except BadVersionError:
            continue
        return block
    raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Other brokers take producer ids now.")


async def skip_producer_ids(
    store: MetadataStore, broker_id: int, highest_used: int
) -> list[Operation]:
    """Operations that skip all ids up to `highest_used`; none if they are skipped already."""
    node = await store.get(PRODUCER_ID_BLOCK)
    newest = decode_producer_id_block(node.data)
    following = 0 if newest is None else newest.stop
    if highest_used < following:
        return []
    start = highest_used - highest_used % BLOCK_SIZE
    data = encode_producer_id_block(broker_id, range(start, start + BLOCK_SIZE))
    return [SetData(PRODUCER_ID_BLOCK, data, node.version)]


def encode_producer_id_block(broker_id: int, ids: range) -> bytes:
    """Bytes of the newest block of producer ids; its end is inclusive, its numbers are strings."""
    return encode_json(
        {
            "version": 1,
            "broker": broker_id,
            "block_start": str(ids.start),
            "block_end": str(ids.stop - 1),
        }
    )


def decode_producer_id_block(data: bytes | None) -> range | None:
    """The newest block allocated; None before the first. Raises MalformedZnodeError."""
    if not data:
        return None
    content = decode_json(PRODUCER_ID_BLOCK, data)
    try:
        return range(int(content["block_start"]), int(content["block_end"]) + 1)
    except (KeyError, TypeError, ValueError) as error:
        raise malformed(PRODUCER_ID_BLOCK, data) from error
