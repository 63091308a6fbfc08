"""End offsets of partitions for consumers, from their leaders: the basis of a share group's lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from broker.runtime.deferred import Deferred, awaited
from protocol.errors import ApiError, ErrorCode
from protocol.messages.list_offsets import ListOffsetsRequest

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.coordinators.share_state.cluster_store import OtherBrokers
    from broker.metadata.metadata_cache import MetadataCache
    from broker.partitions.replicas import Replicas
    from protocol.messages.list_offsets import ListOffsetsResponse
    from protocol.schema import Response

    Place = tuple[str, int]

PURPOSE: Final = "share-lag"
VERSION: Final = 7
CONSUMER: Final = -1
LATEST: Final = -1


class EndOffsets:
    """High watermarks of partitions, wherever their leaders are."""

    def __init__(
        self, broker_id: int, metadata: MetadataCache, replicas: Replicas, others: OtherBrokers
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._replicas = replicas
        self._others = others

    async def of(self, places: Collection[Place]) -> dict[Place, int | ErrorCode]:
        """The end of each partition, by topic and index, or why it is not known."""
        ends: dict[Place, int | ErrorCode] = {}
        elsewhere: dict[int, dict[str, list[int]]] = {}
        for topic, index in places:
            state = self._metadata.partition(topic, index)
            leader = -1 if state is None else state.leader
            if leader == self._broker_id:
                ends[topic, index] = self._of_replica(topic, index)
            elif leader < 0:
                ends[topic, index] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                elsewhere.setdefault(leader, {}).setdefault(topic, []).append(index)
        for leader, topics in elsewhere.items():
            ends |= await self._ask(leader, topics)
        return ends

    def _of_replica(self, topic: str, index: int) -> int | ErrorCode:
        try:
            replica = self._replicas.require(topic, index)
            replica.check_leads()
        except ApiError as error:
            return error.code
        return replica.log.high_watermark

    async def _ask(self, leader: int, topics: dict[str, list[int]]) -> dict[Place, int | ErrorCode]:
        kind = ListOffsetsRequest.Topic
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=0,
            topics=[
                kind(
                    name=name,
                    partitions=[
                        kind.Partition(partition_index=index, timestamp=LATEST) for index in indexes
                    ],
                )
                for name, indexes in topics.items()
            ],
        )
        answered: Deferred[Response | None] = Deferred()

        def note(response: Response | None) -> None:
            answered.complete(response)

        self._others.ask((leader, PURPOSE), request, VERSION, note)
        response = cast("ListOffsetsResponse | None", await awaited(answered))
        wanted = [(name, index) for name, indexes in topics.items() for index in indexes]
        ends: dict[Place, int | ErrorCode] = dict.fromkeys(wanted, ErrorCode.NETWORK_EXCEPTION)
        for topic in () if response is None else response.topics:
            for each in topic.partitions:
                code = ErrorCode(each.error_code)
                ends[topic.name, each.partition_index] = code or each.offset
        return ends
