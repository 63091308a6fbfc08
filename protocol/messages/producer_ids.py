"""Producer ids: for producers, and in blocks for brokers."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import boolean, int16, int32, int64, string
from protocol.schema import Request, Response


class InitProducerIdRequest(Request, key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+"):
    """Obtain a producer id and epoch, and fence predecessors of a transactional id."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+", default=False)
    keep_prepared_txn: bool = boolean("6+", default=False)


class InitProducerIdResponse(
    Response, request=InitProducerIdRequest, versions="0-6", flexible="2+"
):
    """Answer to InitProducerIdRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


class AllocateProducerIdsRequest(
    Request, key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    """A broker asks the controller for a block of producer ids."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(
    Response, request=AllocateProducerIdsRequest, versions="0", flexible="0+"
):
    """Answer to AllocateProducerIdsRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
