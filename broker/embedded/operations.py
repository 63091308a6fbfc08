"""Operations of a test on a running broker beside those of its client. On the broker's loop.

Our own requests go to the same handlers as those of clients, not through a socket, and neither
faults nor `broker.requests` see them. The authorizer sees a super user, as which no client can log
in.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeVar, cast

from broker.coordinators.internal_topics import GROUP_KEY, SHARE_KEY, TRANSACTION_KEY
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.stored_records import LogPiece, next_offset, read_piece
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.deferred import AbandonedError, Deferred, awaited
from controller.features.levels import NEWEST
from protocol.errors import ApiError, ErrorCode
from protocol.messages.api_versions import UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.requests.services import BrokerServices
    from protocol.schema import Request, Response

R = TypeVar("R", bound="Response")

logger = logging.getLogger(__name__)

CLIENT_ID: Final = "test"
PRINCIPAL: Final = "User:broker.testing"
CREATE_VERSION: Final = 7
DELETE_VERSION: Final = 5
FEATURES_VERSION: Final = 1
OFFSETS_VERSION: Final = 8
TIMEOUT_MS: Final = 30_000

NO_OFFSET: Final = -1
NOT_NOW: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors of a broker for a group that it does not coordinate, or not yet."""


async def create_topic(
    services: BrokerServices,
    name: str,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
) -> None:
    """Create a topic; its leaders are known to this broker then. Raises EmbeddedBrokerError."""
    configs = [CreateTopicsRequest.Topic.Config(name=k, value=v) for k, v in config.items()]
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=configs,
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    answer = cast("CreateTopicsResponse", await _ask(services, request, CREATE_VERSION))
    _check(f"topic {name} is not created", answer.topics[0])


async def delete_topic(services: BrokerServices, name: str) -> None:
    """Delete a topic. Raises EmbeddedBrokerError."""
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
    answer = cast("DeleteTopicsResponse", await _ask(services, request, DELETE_VERSION))
    _check(f"topic {name} is not deleted", answer.responses[0])


async def create_internal_topics(services: BrokerServices) -> None:
    """Have coordinators' topics be there; one with too few brokers is left out, as the log says."""
    topics = services.internal_topics
    kinds = (GROUP_KEY, TRANSACTION_KEY, SHARE_KEY)
    for one in [topics.when_ready(kind) for kind in kinds]:
        try:
            await awaited(one)
        except ApiError as error:
            logger.warning("%s", error.message)


async def finalise_features(services: BrokerServices) -> None:
    """Have all features used at the newest level, as in a new cluster of Apache Kafka's."""
    updates = [
        UpdateFeaturesRequest.FeatureUpdate(feature=name, max_version_level=level)
        for name, level in NEWEST.items()
    ]
    request = UpdateFeaturesRequest(feature_updates=updates, timeout_ms=TIMEOUT_MS)
    answer = cast("UpdateFeaturesResponse", await _ask(services, request, FEATURES_VERSION))
    if answer.error_code:
        raise EmbeddedBrokerError(f"features are not finalised: {answer.error_message}")


async def read_partition(
    services: BrokerServices, topic: str, index: int, *, is_committed_only: bool
) -> list[LogPiece]:
    """All that consumers may read of a partition. Nothing if this broker has no such replica."""
    partition = services.replicas.partition(topic, index)
    pieces: list[LogPiece] = []
    if partition is None:
        return pieces
    offset = partition.log.log_start_offset
    while True:
        piece = read_piece(partition, offset, is_committed_only=is_committed_only)
        if piece is None:
            return pieces
        pieces.append(piece)
        offset = next_offset(piece.batches)
        await services.timers.sleep(0)


async def committed_offsets(
    services: BrokerServices, group: str
) -> dict[tuple[str, int], int] | None:
    """Committed offsets of a group; None if this broker does not coordinate it (now)."""
    asked = OffsetFetchRequest.Group(group_id=group, topics=None)
    answer = await _ask(services, OffsetFetchRequest(groups=[asked]), OFFSETS_VERSION)
    (found,) = cast("OffsetFetchResponse", answer).groups
    if found.error_code in NOT_NOW:
        return None
    if found.error_code:
        code = ErrorCode(found.error_code)
        raise EmbeddedBrokerError(f"offsets of group {group}: {code.name}: {code.meaning}")
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in found.topics
        for one in topic.partitions
        if one.committed_offset != NO_OFFSET
    }


def end_offsets(
    services: BrokerServices, partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """End offsets for consumers, of the partitions that this broker leads."""
    found = {}
    for topic, index in partitions:
        partition = services.replicas.partition(topic, index)
        if partition is not None and partition.is_leader:
            found[topic, index] = partition.log.high_watermark
    return found


async def _ask(services: BrokerServices, request: Request, version: int) -> Response:
    context = Context(
        services,
        version,
        CLIENT_ID,
        services.config.inter_broker_listener_name or "PLAINTEXT",
        "/127.0.0.1",
        PRINCIPAL,
        services.clock.now_ms(),
        api_key=int(request.API_KEY),
    )
    answer = ROUTES[int(request.API_KEY)].handler(context, request)
    if isinstance(answer, Deferred):
        try:
            answer = await awaited(answer)
        except AbandonedError as error:
            raise EmbeddedBrokerError(f"{type(request).__name__}: {error}") from None
    if isinstance(answer, request.RESPONSE):
        return answer
    return request.RESPONSE.decode(version, b"".join(answer.encode_parts(version)))


def _check(what: str, one: CreateTopicsResponse.Topic | DeleteTopicsResponse.Response) -> None:
    if one.error_code:
        code = ErrorCode(one.error_code)
        raise EmbeddedBrokerError(f"{what}: {code.name}: {one.error_message or code.meaning}")
