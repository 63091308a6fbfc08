"""A broker without sockets that coordinates groups, on stores in memory and logs on disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.handlers import all_handlers
from broker.requests.answers import error_response
from broker.requests.api_table import ROUTES
from config.broker import BrokerConfig
from controller.topics.topics import NewTopic
from protocol.errors import ApiError
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.broker.handlers.one_broker import OneBroker
from tests.controller.harness import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from protocol.schema import Request

assert all_handlers.MODULES, "they register themselves when they are imported"

GROUP = "orders"


class ManualClock:
    """Wall clock and monotonic clock in one; tests turn it, or set the wall clock apart."""

    def __init__(self) -> None:
        self.ms = NOW_MS
        self.wall_ahead_ms = 0

    def now_ms(self) -> int:
        return self.ms + self.wall_ahead_ms

    def monotonic_ms(self) -> int:
        return self.ms


class GroupBroker(OneBroker):
    """`OneBroker` with group coordinators."""

    def __init__(self, directory: Path, config: BrokerConfig) -> None:
        self.clock = ManualClock()
        super().__init__(directory, config, self.clock)
        self.groups = self.services.groups

    async def ask(self, request: Request, version: int) -> Any:
        """Like dispatch, make an error that a handler raises the error of the response."""
        try:
            return await super().ask(request, version)
        except ApiError as error:
            route = ROUTES[int(type(request).API_KEY)]
            return error_response(route, version, error.code, error.message)

    async def create_topic(self, name: str) -> None:
        await self.topics.create([NewTopic(name)], self.metadata.racks)
        await self.metadata.wait_until(lambda: self.metadata.topic(name) is not None)

    async def find_coordinator(self, group_id: str = GROUP) -> Any:
        return await self.ask(FindCoordinatorRequest(key=group_id), 3)

    async def join(self, version: int = 9, **fields: Any) -> JoinGroupResponse:
        values: dict[str, Any] = {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequest.Protocol(name="range", metadata=b"topics")],
        }
        response: JoinGroupResponse = await self.ask(JoinGroupRequest(**values | fields), version)
        return response

    async def sync(self, member_id: str, version: int = 5, **fields: Any) -> SyncGroupResponse:
        values: dict[str, Any] = {
            "group_id": GROUP,
            "generation_id": 1,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [],
        }
        response: SyncGroupResponse = await self.ask(SyncGroupRequest(**values | fields), version)
        return response

    async def stable_group(self, **fields: Any) -> str:
        """A group with one member in generation 1; returns its id."""
        pending = await self.join(**fields)
        member_id = pending.member_id
        joined = await self.join(member_id=member_id, **fields)
        assert joined.generation_id == 1
        part = SyncGroupRequest.Assignment(member_id=member_id, assignment=b"all")
        group_id = fields.get("group_id", GROUP)
        synced = await self.sync(member_id, assignments=[part], group_id=group_id)
        assert synced.assignment == b"all"
        return member_id


def run_group_broker(
    directory: Path,
    scenario: Callable[[GroupBroker], Coroutine[None, None, None]],
    **keys: Any,
) -> None:
    """Run a scenario on a broker that answers the first member of a group at once."""
    options: dict[str, Any] = {
        "group_initial_rebalance_delay_ms": 0,
        "offsets_topic_num_partitions": 4,
        **keys,
    }

    async def main() -> None:
        started = GroupBroker(directory, BrokerConfig(**options))
        await started.start()
        try:
            await scenario(started)
        finally:
            started.groups.stop()
            await started.stop()

    asyncio.run(main())
