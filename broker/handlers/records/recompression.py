"""The part of a produce request that takes too long for the event loop.

`compression.type` other than `producer` makes the broker compress; a batch may decompress to a
thousand times its size; a request may bring batches for a thousand partitions. All that is done
beside the loop, one batch after another, and each batch is appended when it is ready, in a separate
turn of the loop. The connection is muted until the request is done, as every connection is in
Apache Kafka: that keeps a producer's batches in order. Most batches arrive in the right codec and
never come here. Decision: docs/decisions/0017-recompression-beside-the-loop.md.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.deferred import Deferred
from protocol.errors import ApiError, ErrorCode, detached
from protocol.records.recompression import recompress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.requests.context import Context
    from protocol.messages.produce import ProduceRequest, ProduceResponse
    from protocol.records.validation import ProduceRules


logger = logging.getLogger(__name__)


class Recompression(NamedTuple):
    """One batch to be checked or recompressed, and the place of its answer."""

    topic: ProduceRequest.TopicData
    batch: memoryview
    """As received: it keeps the connection's buffer, which no other request uses until it is
    freed."""
    rules: ProduceRules
    """The rules when the request was read: the topic's may change before the work begins."""
    answers: list[ProduceResponse.Response.PartitionResponse]
    position: int


Result = bytearray | memoryview | ApiError


class Recompressions:
    """Checks and recompresses batches one at a time, so that no request takes all threads."""

    def __init__(
        self,
        context: Context,
        waiting: Sequence[Recompression],
        on_result: Callable[[Recompression, Result], None],
    ) -> None:
        """`on_result` is called for each, on the loop; an error that it raises fails `done`."""
        self.done: Deferred[None] = Deferred()
        """Complete when `on_result` has been called for the last of them."""
        self._context = context
        self._waiting = iter(waiting)
        self._on_result = on_result
        self._next()

    def _next(self) -> None:
        one = next(self._waiting, None)
        if one is None:
            self.done.complete(None)
            return
        context = self._context
        work = partial(_recompressed, one, context.now_ms, context.api_version)
        context.broker.compute_pool.run(work).then(
            self.done.guard(partial(self._take, one)), self.done.fail
        )

    def _take(self, one: Recompression, result: Result) -> None:
        self._on_result(one, result)
        self._next()


def _let_others() -> None:
    """Release the GIL: compiled code keeps it, and the event loop would wait."""
    time.sleep(0)


def _recompressed(one: Recompression, now_ms: int, api_version: int) -> Result:
    """On a thread."""
    rules = replace(one.rules, pause=_let_others)
    try:
        return recompress(one.batch, rules, now_ms, api_version)
    except ApiError as error:
        return detached(error)
    except Exception as error:
        logger.exception("recompression failed")
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error))
