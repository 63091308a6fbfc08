"""Requests of this broker to the controller, wherever that is: by a call, or over a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from broker.network.links import LinkError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.network.links import Link, Links
    from controller.controller import Controller
    from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from protocol.messages.controlled_shutdown import (
        ControlledShutdownRequest,
        ControlledShutdownResponse,
    )
    from protocol.schema import Request, Response

ALTER_PARTITION_VERSION = 3
CONTROLLED_SHUTDOWN_VERSION = 3


class ControllerClient:
    """Finds the active controller for each request, and keeps the connection to it."""

    def __init__(self, broker_id: int, controller: Controller, links: Links) -> None:
        """`controller` is that of this broker; it knows the active one."""
        self._broker_id = broker_id
        self._controller = controller
        self._links = links
        self._link: tuple[int, Link] | None = None

    async def alter_partitions(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Have in-sync sets stored; raises ApiError without an answer."""
        if self._controller.is_active:
            return await self._controller.commands.alter_partitions(request)
        response = await self._ask(request, ALTER_PARTITION_VERSION)
        return cast("AlterPartitionResponse", response)

    async def relieve(self, request: ControlledShutdownRequest) -> list[tuple[str, int]]:
        """Have leadership moved; returns what this broker still leads. Raises ApiError."""
        if self._controller.is_active:
            commands = self._controller.commands
            left = await commands.relieve(request.broker_id, request.broker_epoch)
            return [(at.topic, at.partition) for at in left]
        response = cast(
            "ControlledShutdownResponse", await self._ask(request, CONTROLLED_SHUTDOWN_VERSION)
        )
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code))
        return [(at.topic_name, at.partition_index) for at in response.remaining_partitions]

    async def _ask(self, request: Request, version: int) -> Response:
        """Ask the broker that is controller; raises ApiError when it does not answer."""
        controller_id = self._controller.controller_id
        if controller_id is None or controller_id == self._broker_id:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "there is no controller now")
        if self._link is None or self._link[0] != controller_id:
            if self._link is not None:
                self._link[1].close()
            purpose = f"broker-{self._broker_id}-to-controller"
            self._link = controller_id, self._links.link(controller_id, purpose)
        try:
            return await self._link[1].ask(request, version)
        except LinkError as error:
            raise ApiError(ErrorCode.NOT_CONTROLLER, str(error)) from error
