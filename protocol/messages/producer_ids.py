"""Producer ids: for producers, and in blocks for brokers."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import boolean, int16, int32, int64, string
from protocol.schema import Request, Response


class InitProducerIdRequest(Request, key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+"):
    """Obtain a producer id and epoch, and fence predecessors of a transactional id."""

    transactional_id: str | None = string(nullable="0+")
    """Null for a producer that is only idempotent."""
    transaction_timeout_ms: int = int32()
    """After this the coordinator aborts an open transaction; no meaning without a transactional id.
    """
    producer_id: int = int64("3+", default=-1)
    """Of a producer that wants its epoch raised after an error (KIP-360); -1 for a new one."""
    producer_epoch: int = int16("3+", default=-1)
    """The epoch it has now; -1 for a new producer."""
    enable2_pc: bool = boolean("6+", default=False)
    """Let the transaction wait for an outside coordinator, without a timeout (KIP-939)."""
    keep_prepared_txn: bool = boolean("6+", default=False)
    """Do not abort a transaction that is prepared (KIP-939)."""


class InitProducerIdResponse(
    Response, request=InitProducerIdRequest, versions="0-6", flexible="2+"
):
    """Answer to InitProducerIdRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    """-1 with an error."""
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    """Of the prepared transaction that was kept; -1 for none (KIP-939)."""
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


class AllocateProducerIdsRequest(
    Request, key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    """A broker asks the controller for a block of producer ids (KIP-730)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(
    Response, request=AllocateProducerIdsRequest, versions="0", flexible="0+"
):
    """Answer to AllocateProducerIdsRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id_start: int = int64()
    """First id of the block."""
    producer_id_len: int = int32()
    """Number of ids in the block."""
