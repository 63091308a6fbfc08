"""The acknowledgements of one request: checked and handed on, and what becomes of each partition's.

All of one partition's hold together, or none; partitions are independent of each other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
from coordinator.share_partitions.record_range import AcknowledgeType
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.handlers.share_groups.topic_access import TopicAccess
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.share_partitions.share_sessions import Member, TopicPartition
    from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest

    Batches = (
        Sequence[ShareFetchRequest.Topic.Partition.AcknowledgementBatch]
        | Sequence[ShareAcknowledgeRequest.Topic.Partition.AcknowledgementBatch]
    )

logger = logging.getLogger(__name__)

FIRST_VERSION_WITH_RENEWAL: Final = 2
TYPES_AT_ONCE: Final = 1000
BATCHES_AT_ONCE: Final = 16
"""Batches that are checked in one step, or types of one batch: twenty microseconds."""

Outcomes = dict["TopicPartition", ApiError | None]
"""Result of the acknowledgements of each partition; None if they were accepted."""


class Acknowledgements:
    """Call `add` for each partition, then `close`; `outcomes` then come when all is stored."""

    def __init__(
        self, context: Context, member: Member, access: TopicAccess, *, is_renewal: bool
    ) -> None:
        self._context = context
        self._member = member
        self._access = access
        has_renewal = context.api_version >= FIRST_VERSION_WITH_RENEWAL
        last = AcknowledgeType.RENEW if has_renewal else AcknowledgeType.REJECT
        self._types = frozenset(range(last + 1))
        if not is_renewal:
            self._types -= {AcknowledgeType.RENEW}
        self._outcomes: Outcomes = {}
        self._countdown: Countdown[Outcomes] = Countdown(lambda: self._outcomes)

    @property
    def outcomes(self) -> Deferred[Outcomes]:
        """By partition, in the order in which they were added."""
        return self._countdown.deferred

    def add(self, wanted: TopicPartition, batches: Batches) -> Steps[None]:
        """Take the acknowledgements for one partition into account."""
        if wanted in self._outcomes:
            self._outcomes[wanted] = ApiError(
                ErrorCode.INVALID_REQUEST, "partition is listed twice"
            )
            return
        self._outcomes[wanted] = None
        try:
            storing = yield from self._apply(wanted, batches)
        except ApiError as error:
            self._outcomes[wanted] = detached(error)
            return
        self._countdown.await_(self._settled(wanted, storing), lambda _: None)

    def close(self) -> None:
        """Note that no more of them follow."""
        self._countdown.close()

    def _apply(self, wanted: TopicPartition, batches: Batches) -> Steps[Deferred[None]]:
        checked = yield from self._checked(batches)
        self._access.require(wanted)
        done: Deferred[None] = Deferred()
        if not checked:
            done.complete(None)
            return done
        shares = self._context.broker.share_partitions
        led = shares.find(self._member.group_id, wanted)
        if led is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return (yield from led.acknowledge(self._member.member_id, checked))

    def _checked(self, batches: Batches) -> Steps[list[AcknowledgementBatch]]:
        """The batches as they are decided on. Raises ApiError INVALID_REQUEST."""
        checked: list[AcknowledgementBatch] = []
        previous_last = -1
        for batch in batches:
            first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
            if not previous_last <= first <= last:
                raise ApiError(ErrorCode.INVALID_REQUEST, "batches are not in order")
            if not types or (len(types) > 1 and last - first + 1 != len(types)):
                raise ApiError(ErrorCode.INVALID_REQUEST, "not one type for each record")
            for start in range(0, len(types), TYPES_AT_ONCE):
                if not self._types.issuperset(types[start : start + TYPES_AT_ONCE]):
                    raise ApiError(ErrorCode.INVALID_REQUEST, "unknown type of acknowledgement")
                if start or not len(checked) % BATCHES_AT_ONCE:
                    yield
            previous_last = last
            checked.append(AcknowledgementBatch(first, last, types))
        return checked

    def _settled(self, wanted: TopicPartition, storing: Deferred[None]) -> Deferred[None]:
        """Complete once it is known what became of it."""
        known: Deferred[None] = Deferred()

        def hold(_: None) -> None:
            known.complete(None)

        def fail(error: Exception) -> None:
            if not isinstance(error, ApiError):
                logger.error("share group acknowledgement failed", exc_info=error)
                error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._outcomes[wanted] = error
            known.complete(None)

        storing.then(hold, fail)
        return known
