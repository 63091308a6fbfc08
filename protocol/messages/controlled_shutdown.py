"""Broker to controller: move my leaders away (ZooKeeper mode)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class ControlledShutdownRequest(
    Request, key=ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+"
):
    """A broker that is about to stop asks the controller to move its leaders away."""

    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1)


class ControlledShutdownResponse(
    Response, request=ControlledShutdownRequest, versions="0-3", flexible="3+"
):
    """Answer to ControlledShutdownRequest."""

    class RemainingPartition(Struct):
        """A partition that this broker still leads."""

        topic_name: str = string()
        partition_index: int = int32()

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
    """The broker asks again, or stops anyway, while there are some."""
