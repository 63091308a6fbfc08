"""One broker: how it starts, serves and stops.

A start goes from stage to stage (`broker.startup`): each is whole once it is there, and says how it
is undone. A client never sees half a broker, since connections are accepted last.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from broker.cluster.admission import StartAbandonedError
from broker.handlers import all_handlers
from broker.network.connection_services import connection_services
from broker.network.listener import ListenError
from broker.runtime.platform import LocalPlatform, Platform
from broker.runtime.shutdown import UndoStack
from broker.startup.access_notices import tell_access
from broker.startup.addresses import take_addresses
from broker.startup.cluster_parts import Foundation
from broker.startup.logs import load, lock_directories
from broker.startup.machine import StopRequest, take_machine
from broker.startup.metadata import open_metadata
from broker.startup.parts import configure, put_together
from broker.startup.settings import read_settings
from broker.startup.start_error import StartError
from compiled.activation import activation
from controller.metadata_store.store import StoreError
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.listener import Listeners
    from broker.requests.services import BrokerServices, Interpose
    from broker.runtime.supervision import Supervision
    from broker.startup.addresses import Addresses
    from broker.startup.parts import Parts
    from config.broker import BrokerConfig

logger = logging.getLogger(__name__)


class Broker:
    """The door to a broker: run it, and have it stop."""

    def __init__(self, config: BrokerConfig, platform: Platform | None = None) -> None:
        """Make a broker that `run` will start. Call it on the event loop."""
        assert all_handlers.MODULES
        self._config = config
        self._platform = platform or LocalPlatform()
        self.clock = self._platform.clock
        self.services: BrokerServices | None = None
        """Its parts; None until a start has come so far that they can be put together."""
        self.on_ready: Callable[[], None] = _do_nothing
        """Called once, when it serves."""
        self.on_stopping: Callable[[], None] = _do_nothing
        """Called once, when it begins to stop, however far its start came."""
        self._call_soon = asyncio.get_running_loop().call_soon_threadsafe
        self._stop = asyncio.Event()
        self.failure: str | None = None
        """Reason why it cannot go on, or cannot start."""
        self.interpose: Interpose | None = None
        """Set before `run` to intercept each request before its handler."""
        self._listeners: Listeners | None = None
        self._is_up = False
        self._is_abandoned = False

    @property
    def is_stopping(self) -> bool:
        """True if it was asked to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Begin to stop; `run` returns when it is done."""
        self._stop.set()

    def abandon(self) -> None:
        """End like a killed process: connections break off, leaderships are not handed over.

        The disk and the store must refuse later writes themselves; `run` returns.
        """
        self._is_abandoned = True
        if self._listeners is not None:
            self._listeners.break_off()
        self._stop.set()

    def give_up(self, reason: str) -> None:
        """Stop as one that cannot go on: `run` raises StartError in the end. From any thread."""
        self.failure = reason
        self._call_soon(self._stop.set)

    async def run(self) -> None:
        """Start, serve until `stop`, and stop. Raises StartError."""
        undo = UndoStack()
        async with asyncio.TaskGroup() as group:
            try:
                await self._start_or_refuse(group, undo)
                await self._stop.wait()
            except StartAbandonedError as reason:
                logger.info("%s", reason)
            except StartError as error:
                self.failure = str(error)
            finally:
                await self._shut_down(undo)
        if self.failure is not None:
            raise StartError(self.failure)

    async def _start_or_refuse(self, group: asyncio.TaskGroup, undo: UndoStack) -> None:
        """Start; a disk that fails meanwhile is a reason in one line, like any other."""
        started_ms = self.clock.monotonic_ms()
        try:
            base = await self._open(group, undo)
            parts = put_together(base)
            await self._begin(base, parts, undo)
        except (StoreError, LogDirectoryError, ListenError) as error:
            raise StartError(str(error)) from None
        addresses = base.addresses
        tell_access(base.config, addresses.bound.values())
        made = activation()
        logger.info("compiled: %s (%s)", made.answer, made.reason)
        took_ms = self.clock.monotonic_ms() - started_ms
        self.on_ready()
        broker_id = base.config.broker_id
        logger.info("broker %d ready on %s in %d ms", broker_id, addresses.shown, took_ms)

    async def _open(self, group: asyncio.TaskGroup, undo: UndoStack) -> Foundation:
        """Bind, lock, open and load, in an order that reports errors early."""
        config = self._config
        stop = StopRequest(self._stop, self.give_up)
        machine = take_machine(config, self._platform, group, stop)
        addresses = await take_addresses(config, machine, undo)
        self._listeners = addresses.listeners
        storage = await lock_directories(config, machine, undo)
        metadata = await open_metadata(config, machine, storage, undo)
        settings = await read_settings(metadata, storage)
        await load(storage, metadata, settings, machine)
        return Foundation(machine, addresses, storage, metadata, settings)

    async def _begin(self, base: Foundation, parts: Parts, undo: UndoStack) -> None:
        """Put the parts to work: join the cluster, apply the controller's requests, and serve."""
        _push_ends(base, parts, undo)
        self.services = services = parts.services
        services.interpose = self.interpose
        await configure(base, parts)
        supervision = base.machine.supervision

        async def register() -> None:
            await services.registrar.ensure()

        await base.metadata.do(register)
        if services.delegation_tokens is not None:
            await base.metadata.do(services.delegation_tokens.start)
        parts.cluster.start()
        supervision.keep("control requests", partial(services.control.run, parts.applied))
        if services.is_in_cluster:
            services.metadata.is_awaited = True
            # The controller may be another broker, and must be heard.
            await self._serve(base.addresses, parts)
        supervision.keep("controller", services.controller.run)
        await base.machine.unless_stopped(self._hear_from_controller(services))
        services.groups.start()
        services.transactions.start()
        services.share_coordinators.start()
        await self._begin_upkeep(parts, undo, supervision)
        if not services.is_in_cluster:
            await self._serve(base.addresses, parts)

    async def _hear_from_controller(self, services: BrokerServices) -> None:
        """Wait until there is a controller and this broker has its metadata."""
        metadata, broker_id = services.metadata, services.config.broker_id
        await services.controller.wait_until_ready()
        await metadata.wait_until(lambda: metadata.is_alive(broker_id))
        await services.control.wait_until_applied()
        metadata.settle()

    async def _begin_upkeep(self, parts: Parts, undo: UndoStack, supervision: Supervision) -> None:
        services = parts.services
        self._is_up = True
        if services.is_in_cluster and services.config.controlled_shutdown_enable:
            undo.push("handing leadership over", partial(self._leave, parts))
        parts.housekeeping.start()
        if parts.cleaner is not None:
            parts.cleaner.start()
        supervision.keep("moves of replicas", parts.mover.run)
        if parts.token_expiry is not None:
            parts.token_expiry.start(services.config.delegation_token_expiry_check_interval_ms)
        parts.metrics.serve()
        await parts.key_index.start()

    async def _leave(self, parts: Parts) -> None:
        if not self._is_abandoned:
            await parts.cluster.leave()

    async def _serve(self, addresses: Addresses, parts: Parts) -> None:
        config, listeners = parts.services.config, addresses.listeners
        dispatcher = parts.metrics.dispatcher
        await listeners.serve(connection_services(config, dispatcher, self.clock, self._call_soon))
        listeners.look_after_idle(config.connections_max_idle_ms)

    async def _shut_down(self, undo: UndoStack) -> None:
        """Undo the steps of the start, in reverse order, however far it came."""
        started_ms = self.clock.monotonic_ms()
        self.on_stopping()
        await undo.undo()
        if self._is_up:
            logger.info("stopped in %d ms", self.clock.monotonic_ms() - started_ms)


def _do_nothing() -> None:
    """Default callback."""


def _push_ends(base: Foundation, parts: Parts, undo: UndoStack) -> None:
    """Push the ends of all parts, before one of them begins: a start may break at any step.

    Timers end first, and listeners next, so that nothing new begins while the rest ends.
    """
    services = parts.services
    undo.push("stopping groups", services.groups.stop)
    undo.push("stopping transactions", services.transactions.stop)
    undo.push("stopping share coordinators", services.share_coordinators.stop)
    undo.push("stopping share partitions", services.share_partitions.stop)
    undo.push("stopping deliveries", parts.deliveries.stop)
    undo.push("stopping cluster", parts.cluster.stop)
    undo.push("stopping housekeeping", parts.housekeeping.stop)
    if parts.token_expiry is not None:
        undo.push("stopping the expiry of tokens", parts.token_expiry.stop)
    undo.push("closing the metrics", parts.metrics.close)
    undo.push("closing the key index", parts.key_index.close)
    undo.push("closing the listeners", base.addresses.listeners.close)
    undo.push("closing the timers", services.timers.close)
