"""Creates topics within the client's timeout, and none after the client had an error.

The metadata store may answer only after the timeout, and still carry the write out. The client has
had an error by then, so the topic is deleted again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controller.topics.topics import CreatedTopic
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from broker.requests.services import BrokerServices
    from controller.topics.topics import NewTopic

logger = logging.getLogger(__name__)

Results = dict[str, CreatedTopic | ApiError]


async def create_within(
    broker: BrokerServices, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool
) -> Results:
    """Create topics; those that are not created in time will not be created later either.

    With a `timeout_ms` of 0 or less the client does not wait for leaders, only for the write.
    """
    answer: asyncio.Future[Results] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        with broker.topics.told.watch(topic.name for topic in topics) as told:
            try:
                results = await broker.topics.create(
                    topics,
                    broker.metadata.racks,
                    validate_only=validate_only,
                    is_wanted=lambda: not answer.done(),
                )
            except asyncio.CancelledError:
                answer.cancel()
                raise
            except Exception as error:  # noqa: BLE001  (who waits for the answer tells of it)
                if not answer.done():
                    answer.set_exception(error)
                return
            if not answer.done():
                answer.set_result(results)
            elif not validate_only:
                await _take_back(broker, results, told)

    broker.spawn(work(), "create topics")
    try:
        async with asyncio.timeout(timeout_ms / 1000 if timeout_ms > 0 else None):
            results = await answer
    except TimeoutError:
        late = ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            "The metadata store did not answer in time. The topic is not created; try again.",
        )
        return {topic.name: late for topic in topics}
    broker.topics.told.note(name for name, result in results.items() if _exists(result))
    return results


def _exists(result: CreatedTopic | ApiError) -> bool:
    return isinstance(result, ApiError) and result.code == ErrorCode.TOPIC_ALREADY_EXISTS


async def _take_back(broker: BrokerServices, results: Results, told: Collection[str]) -> None:
    created = {
        name: result.topic_id
        for name, result in results.items()
        if isinstance(result, CreatedTopic) and name not in told
    }
    if created:
        logger.warning(
            "topics %s created after their request timed out, deleting them again",
            ", ".join(created),
        )
        await broker.topics.delete(created, created)
