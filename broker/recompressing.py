"""The part of a produce request that must be recompressed before it can be appended.

`compression.type` other than `producer` makes the broker compress, which takes too long for the
event loop; so it happens beside it, and the append follows when it is done. Meanwhile the
connection rests, as all do in Apache Kafka while a request of theirs is in work: that keeps the
batches of a producer in order, with nothing to sort. A batch that arrived in the right codec
passes by here. Decision: docs/decisions/0017-recompression-beside-the-loop.md.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.recompression import recompress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.context import Context
    from broker.deferred import Deferred
    from protocol.messages.produce import ProduceRequest, ProduceResponse
    from protocol.records.validation import ProduceRules


logger = logging.getLogger(__name__)


class Recompression(NamedTuple):
    """One batch that waits for its codec, and the place of its answer in the response."""

    topic: ProduceRequest.TopicData
    batch: memoryview
    """As it was received: it keeps the connection's buffer, which no other request uses then."""
    rules: ProduceRules
    answers: list[ProduceResponse.Response.PartitionResponse]
    position: int


Result = bytearray | ApiError


def recompress_all(context: Context, waiting: Sequence[Recompression]) -> Deferred[list[Result]]:
    """Have each batch recompressed by the rules of its topic; the results come in this order."""
    # The rules that asked for it: they may change before the work begins.
    work = [(one.batch, one.rules) for one in waiting]
    now_ms, version = context.now_ms, context.api_version

    def compute() -> list[Result]:
        results: list[Result] = []
        for batch, rules in work:
            try:
                results.append(recompress(batch, rules, now_ms, version))
            except ApiError as error:
                results.append(error)
            except Exception as error:
                logger.exception("recompression failed")
                results.append(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))
        return results

    return context.broker.side_work.run(compute)
