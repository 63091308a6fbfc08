"""The limits that a broker's configuration, and that of single groups, set for streams groups."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.consumer_groups.settings import NO_OVERRIDES, GroupOverrides


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings:
    """Attribute for attribute a key `group.streams.…`; the defaults are Apache's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: tuple[str, ...] = ()
    task_offset_interval_ms: int = 60_000
    acceptable_recovery_lag: int = 10_000
    max_topology_size: int = 2_000
    """Subtopologies, topics and configurations of one topology."""
    max_tasks: int = 20_000
    overrides: GroupOverrides = NO_OVERRIDES

    def session_timeout_of(self, group_id: str) -> int:
        """streams.session.timeout.ms of the group."""
        return self.overrides.value(group_id, "streams.session.timeout.ms", self.session_timeout_ms)

    def heartbeat_interval_of(self, group_id: str) -> int:
        """streams.heartbeat.interval.ms of the group."""
        return self.overrides.value(
            group_id, "streams.heartbeat.interval.ms", self.heartbeat_interval_ms
        )

    def assignment_interval_of(self, group_id: str) -> int:
        """streams.assignment.interval.ms of the group."""
        return self.overrides.value(
            group_id, "streams.assignment.interval.ms", self.assignment_interval_ms
        )

    def initial_rebalance_delay_of(self, group_id: str) -> int:
        """streams.initial.rebalance.delay.ms of the group."""
        return self.overrides.value(
            group_id, "streams.initial.rebalance.delay.ms", self.initial_rebalance_delay_ms
        )

    def assignment_configs_of(self, group_id: str) -> dict[str, str]:
        """Return the assignor's configuration, which is stored with the group's epoch."""
        replicas = self.overrides.value(
            group_id, "streams.num.standby.replicas", self.num_standby_replicas
        )
        configs = {NUM_STANDBY_REPLICAS: str(replicas)}
        tags = self.overrides.value(
            group_id, "streams.rack.aware.assignment.tags", self.rack_aware_assignment_tags
        )
        return configs | ({RACK_TAGS: ",".join(tags)} if tags else {})

    def task_offset_interval_of(self, group_id: str) -> int:
        """streams.task.offset.interval.ms of the group."""
        return self.overrides.value(
            group_id, "streams.task.offset.interval.ms", self.task_offset_interval_ms
        )

    def acceptable_recovery_lag_of(self, group_id: str) -> int:
        """streams.acceptable.recovery.lag of the group."""
        return self.overrides.value(
            group_id, "streams.acceptable.recovery.lag", self.acceptable_recovery_lag
        )


ASSIGNOR = "sticky"
"""The only assignor."""
NUM_STANDBY_REPLICAS = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"
