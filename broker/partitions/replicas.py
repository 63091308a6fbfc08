"""The partitions on this broker, and the controller's instructions for them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from broker.partitions.looks_in_turn import LooksInTurn
from broker.partitions.partition import Partition
from protocol.errors import ApiError, ErrorCode
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.uuids import ZERO_UUID
from storage.errors import ExhaustedError, LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from broker.partitions.partition_services import PartitionServices
    from config.topic import TopicConfig
    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
    from protocol.messages.update_metadata import UpdateMetadataRequest
    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

logger = logging.getLogger(__name__)

StopState = StopReplicaRequest.TopicState.PartitionState
NO_EPOCH = -1
"""A lower bound of epochs that fence: -1 is none, -2 goes with the deletion of a topic."""


class TopicConfigs(Protocol):
    """Source of topic configurations."""

    def topic_config(self, topic: str) -> TopicConfig:
        """Defaults with the topic's overrides on top."""
        ...


class Replicas:
    """All partitions of this broker, by topic name and index, and topic names by id."""

    def __init__(
        self,
        logs: LogDirectories,
        topic_configs: TopicConfigs,
        services: PartitionServices,
    ) -> None:
        self._logs = logs
        self._clock = services.clock
        self._topic_configs = topic_configs
        self._services = services
        self.looks = LooksInTurn(services.timers)
        """Of fetches that wait for any of them."""
        self._live_brokers: frozenset[int] = frozenset()
        self._listeners: list[Callable[[Partition, bool], None]] = []
        self._assignment_listeners: list[Callable[[Partition], None]] = []
        self.by_topic: dict[str, dict[int, Partition]] = {}
        self.names_by_id: dict[UUID, str] = {}
        self.followed: dict[Partition, None] = {}
        """Partitions that this broker leads, and others follow; in no order."""

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self.by_topic.values():
            yield from partitions.values()

    def partition(self, topic: str, index: int) -> Partition | None:
        """The replica, if this broker holds it."""
        partitions = self.by_topic.get(topic)
        return partitions.get(index) if partitions is not None else None

    def require(self, topic: str, index: int) -> Partition:
        """The replica; raises UNKNOWN_TOPIC_OR_PARTITION when this broker does not hold it."""
        partition = self.partition(topic, index)
        if partition is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{index} here"
            )
        return partition

    def on_leadership_change(self, listener: Callable[[Partition, bool], None]) -> None:
        """Have `listener(partition, is_leader)` called after each change of role.

        Also when it leads on and missed an epoch, in which another may have led. (One epoch ends
        and the next begins under the same leader whenever a follower dies.)
        """
        self._listeners.append(listener)

    def on_assignment(self, listener: Callable[[Partition], None]) -> None:
        """Have `listener(partition)` called after each word of the controller, and the last."""
        self._assignment_listeners.append(listener)

    def lead_or_follow(
        self, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState
    ) -> ErrorCode:
        """Apply the controller's state of a partition; its log is created if need be.

        Raises ExhaustedError if the request must be repeated, and nothing else: an error here would
        leave out the partitions after this one, which the controller does not send again.
        """
        try:
            partition = self._obtain(topic, topic_id, state)
            was_leader, old_epoch = partition.is_leader, partition.leader_epoch
            if not partition.assume(state):
                return ErrorCode.STALE_CONTROLLER_EPOCH
            if partition.machine.in_sync.followers:
                self.followed[partition] = None
            else:
                self.followed.pop(partition, None)
        except ExhaustedError:
            raise
        except LogDirectoryError as error:  # logged when it failed
            return error.code
        except ApiError as error:
            logger.warning("%s-%d: %s", topic, state.partition_index, error)
            return error.code
        except Exception:
            logger.exception(
                "%s-%d: LeaderAndIsr could not be applied", topic, state.partition_index
            )
            return ErrorCode.UNKNOWN_SERVER_ERROR
        has_missed_epoch = partition.is_leader and partition.leader_epoch > old_epoch + 1
        if has_missed_epoch or was_leader != partition.is_leader:
            self._tell_of_leadership(partition)
        self._tell_of_assignment(partition)
        return ErrorCode.NONE

    def stop(self, topic: str, state: StopState) -> ErrorCode:
        """Stop serving a replica; with `delete_partition`, give up its log too.

        Raises ExhaustedError if that must be done again.
        """
        partition = self.partition(topic, state.partition_index)
        if partition is not None:
            if NO_EPOCH < state.leader_epoch < partition.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            if partition.log.directory.failure is not None:
                return ErrorCode.KAFKA_STORAGE_ERROR
            self._give_up(partition)
        if state.delete_partition:
            try:
                self._logs.delete(topic, state.partition_index, self._clock.now_ms())
            except ExhaustedError:
                raise
            except ApiError as error:
                return error.code
        return ErrorCode.NONE

    async def forget_deleted(self) -> None:
        """Return once no checkpoint names deleted logs.

        After a crash, the next log of such a name would begin where the deleted one did:
        acknowledged records before that offset would be lost.
        """
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not written.done():  # this task may have been cancelled
                written.set_result(None)

        def write() -> None:
            try:
                self._logs.checkpoint_all()
            finally:
                loop.call_soon_threadsafe(settle)

        self._logs.settings.run_later(write)
        await written

    def configure(self, partition: Partition, config: TopicConfig) -> None:
        """Its topic's configuration is `config` now."""
        awaited_flushes = partition.durability is not None
        self._logs.configure(partition.log, config)
        partition.config_changed()
        if awaited_flushes or partition.durability is not None:
            self._tell_of_assignment(partition)  # it may be followed in another way

    def note_brokers(self, request: UpdateMetadataRequest) -> bool:
        """Note the live brokers; return whether partitions must be updated, as they changed."""
        live = frozenset(broker.id for broker in request.live_brokers)
        has_changed = live != self._live_brokers
        self._live_brokers = live
        return has_changed

    def _obtain(self, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> Partition:
        index = state.partition_index
        partition = self.partition(topic, index)
        log = partition.log if partition is not None else self._logs.get(topic, index)
        if log is not None and log.directory.failure is not None:
            raise log.directory.failure.with_traceback(None)
        if log is None:
            log = self._create_log(topic, topic_id, state)
        elif log.topic_id in (None, ZERO_UUID):
            if topic_id != ZERO_UUID:
                self._logs.assign_topic_id(log, topic_id)
        elif topic_id not in (ZERO_UUID, log.topic_id):
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the log on disk has topic id {log.topic_id}, the controller says {topic_id}; "
                "the log is kept, and the partition not served",
            )
        if partition is None:
            # A log that was adopted was loaded before its topic was known.
            self._logs.configure(log, self._topic_configs.topic_config(topic))
            partition = Partition(log, self._services)
            self.by_topic.setdefault(topic, {})[index] = partition
        self.names_by_id[partition.topic_id] = topic
        return partition

    def _create_log(self, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> Log:
        if not state.is_new and self._logs.is_any_offline:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "its log is in none of the log directories that can be used, and not made anew",
            )
        config = self._topic_configs.topic_config(topic)
        now_ms = self._clock.now_ms()
        return self._logs.create(topic, state.partition_index, topic_id, config, now_ms)

    def _give_up(self, partition: Partition) -> None:
        partitions = self.by_topic[partition.topic]
        del partitions[partition.index]
        was_leader = partition.is_leader
        partition.retire()
        self.followed.pop(partition, None)
        self._tell_of_assignment(partition)
        if not partitions:
            del self.by_topic[partition.topic]
            self.names_by_id.pop(partition.topic_id, None)
        if was_leader:
            self._tell_of_leadership(partition)

    def _tell_of_leadership(self, partition: Partition) -> None:
        """Call the listeners; one that raises costs neither the others nor other partitions."""
        for listener in self._listeners:
            try:
                listener(partition, partition.is_leader)
            except Exception:
                logger.exception(
                    "%s-%d: leadership change could not be applied",
                    partition.topic,
                    partition.index,
                )

    def _tell_of_assignment(self, partition: Partition) -> None:
        for listener in self._assignment_listeners:
            try:
                listener(partition)
            except Exception:
                logger.exception(
                    "%s-%d: assignment change could not be applied",
                    partition.topic,
                    partition.index,
                )
