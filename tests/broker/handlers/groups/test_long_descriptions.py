"""Descriptions of many groups: others are served between them, also if there is no such group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from protocol.messages.share_group_offsets import DescribeShareGroupOffsetsRequest
from protocol.messages.share_groups import ShareGroupDescribeRequest
from protocol.messages.streams_groups import StreamsGroupDescribeRequest
from tests.broker.handlers.data_broker import DataBroker, run_data_broker
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path

MANY = 20_000
LEAST_TURNS = 10
"""A description takes a tenth of a second and a slice a hundredth; each is a turn of the loop."""
NAMES = [f"group-{number}" for number in range(MANY)]
OFFSETS = [DescribeShareGroupOffsetsRequest.Group(group_id=name, topics=[]) for name in NAMES]
CASES = {
    "consumer": (
        ConsumerGroupDescribeRequest(group_ids=NAMES, include_authorized_operations=False),
        1,
    ),
    "share": (ShareGroupDescribeRequest(group_ids=NAMES, include_authorized_operations=False), 1),
    "streams": (
        StreamsGroupDescribeRequest(group_ids=NAMES, include_authorized_operations=False),
        0,
    ),
    "share offsets": (DescribeShareGroupOffsetsRequest(groups=OFFSETS), 1),
}


@pytest.mark.parametrize(("request_", "version"), CASES.values(), ids=CASES.keys())
def test_others_are_served_between_groups(tmp_path: Path, request_: Any, version: int) -> None:
    """Counted until all are looked at, which `encode_in_steps` then notices by its first step."""

    async def scenario(broker: DataBroker) -> None:
        turns = before_encoding = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)  # noqa: TID251

        response_class = request_.RESPONSE
        encode = response_class.encode_in_steps

        def noted(self: Any, *arguments: Any) -> Any:
            nonlocal before_encoding
            before_encoding = turns
            return encode(self, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(response_class, "encode_in_steps", noted)
            beside = asyncio.get_running_loop().create_task(others())
            await arrival(broker.call(request_, version))
            beside.cancel()

        assert before_encoding > LEAST_TURNS

    run_data_broker(tmp_path, scenario)
