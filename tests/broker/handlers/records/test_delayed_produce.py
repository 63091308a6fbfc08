"""A produce that waits for its replicas, from within; `test_produce` has what clients see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from broker.handlers.records.appends import Appends
from broker.handlers.records.produce import DelayedProduce
from protocol.messages.produce import ProduceRequest
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from broker.handlers.records.appends import Answer


@pytest.mark.parametrize("is_committed_before", [False, True])
def test_answer_that_cannot_be_made_leaves_nothing_behind(
    is_committed_before: bool, tmp_path: Path
) -> None:
    """Neither the timer nor the waits for other partitions outlive the error."""

    async def scenario(broker: DataBroker) -> None:
        first = await broker.create_topic(count=2)
        second = broker.replicas.partition(TOPIC, 1)
        assert second is not None
        epoch = first.leader_epoch + 1
        for partition in (first, second):
            broker.lead(partition, epoch, isr=(0, 1))
        request = produce_request({(TOPIC, 0): records(), (TOPIC, 1): records()})
        received = ProduceRequest.decode(12, memoryview(bytearray(request.encode(12))))
        appends = Appends(broker.context(12), received)
        response = appends.append_all()
        appends.pending[0] = appends.pending[0]._replace(answer=cast("Answer", None))

        if is_committed_before:
            broker.lead(first, epoch, isr=(0,))
        delayed = DelayedProduce(appends, response)
        broker.lead(first, epoch, isr=(0,))

        with pytest.raises(AttributeError):
            _ = delayed.deferred.value
        assert cast("asyncio.TimerHandle", delayed._timer).cancelled()
        assert [wait for wait in delayed._waits if wait.callback is not None] == []
        assert delayed._waiting == {}

    run_data_broker(tmp_path, scenario)
