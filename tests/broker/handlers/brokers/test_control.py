"""Control requests that were meant for a broker before it restarted (KIP-380)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.requests.dispatch import Dispatcher
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.broker.connections import connected
from tests.broker.handlers.data_broker import DataBroker, run_data_broker
from tests.support.wire import request_header

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

EPOCH = 7
TERM: dict[str, Any] = {"controller_id": 1, "controller_epoch": 1, "broker_epoch": EPOCH - 1}
REQUESTS = {
    "LeaderAndIsr": (LeaderAndIsrRequest(**TERM, live_leaders=[]), 7),
    "UpdateMetadata": (UpdateMetadataRequest(**TERM, live_brokers=[]), 8),
    "StopReplica": (StopReplicaRequest(**TERM, topic_states=[]), 4),
}


@pytest.mark.parametrize(("request_", "version"), REQUESTS.values(), ids=REQUESTS.keys())
def test_control_request_to_an_earlier_registration_is_refused(
    tmp_path: Path, request_: Request, version: int
) -> None:
    async def scenario(broker: DataBroker) -> None:
        broker.services.is_in_cluster = True
        broker.services.registrar.epoch = EPOCH
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(request_header(request_.API_KEY, version) + b"\0" + request_.encode(version))
            size = int.from_bytes(await wire.reader.readexactly(4), "big")
            data = memoryview(await wire.reader.readexactly(size))
        refused = cast("Any", request_.RESPONSE.decode(version, data, 5))
        assert refused.error_code == ErrorCode.STALE_BROKER_EPOCH

    run_data_broker(tmp_path, scenario)
