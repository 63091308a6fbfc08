"""Broker to controller: the ISR has changed (KIP-497)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class AlterPartitionRequest(Request, key=ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+"):
    """A leader asks the controller to change the in-sync replicas."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """The ISR that the leader wants."""

            class NewIsrWithEpoch(Struct):
                """A member of the ISR, in its present life."""

                broker_id: int = int32()
                broker_epoch: int = int64(default=-1)
                """INELIGIBLE_REPLICA if the broker has been restarted since (KIP-903); -1 skips it.
                """

            partition_index: int = int32()
            leader_epoch: int = int32()
            new_isr: list[int] = array(int32, "0-2", default=())
            new_isr_with_epochs: list[NewIsrWithEpoch] = array(NewIsrWithEpoch, "3+", default=())
            leader_recovery_state: int = int8("1+", default=0)
            """0 recovered, 1 recovering from an unclean election (KIP-704)."""
            partition_epoch: int = int32()
            """Of the state that the change starts from; INVALID_UPDATE_VERSION if it is not the
            present one.
            """

        topic_name: str = string("0-1", default="")
        topic_id: UUID = uuid("2+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[Topic] = array(Topic)


class AlterPartitionResponse(
    Response, request=AlterPartitionRequest, versions="0-3", flexible="0+"
):
    """Answer to AlterPartitionRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """Current state of a partition."""

            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()
            isr: list[int] = array(int32)
            leader_recovery_state: int = int8("1+", default=0)
            partition_epoch: int = int32()

        topic_name: str = string("0-1", default="")
        topic_id: UUID = uuid("2+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    topics: list[Topic] = array(Topic)
