"""StreamsGroupHeartbeat: joining, staying in and leaving a group, and its task assignments.

Possible changes by a heartbeat, in order, each with its record:

    the member        new, or with other metadata
    the topology      set by the first member; a later one must be the same
    the group epoch   if the member changed, or the topics of the topology, or its being ready, or
                      the assignor's configuration
    the target        if it is of an older epoch than the group's, the last one is
                      `group.streams.assignment.interval.ms` old, and a new group has waited for
                      `group.streams.initial.rebalance.delay.ms`
    the assignment    one step towards the target (`reconciliation`)

Most heartbeats change nothing, and cost a few look-ups.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coordinator.effects import Effects
from coordinator.modern_groups.epochs import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
)
from coordinator.streams_groups.endpoints import partitions_by_endpoint
from coordinator.streams_groups.group import NOT_VALIDATED, StreamsGroup
from coordinator.streams_groups.heartbeats.checks import check_tasks
from coordinator.streams_groups.heartbeats.membership import (
    Arrival,
    HeartbeatCaller,
    arrive,
    must_assign,
    updated_member,
)
from coordinator.streams_groups.heartbeats.responses import (
    Outcome,
    answer,
    note_status,
    refuse,
    refused,
    tell_assignment,
)
from coordinator.streams_groups.member import MemberState, StreamsMember
from coordinator.streams_groups.partition_counts import invalid_topology
from coordinator.streams_groups.reconciliation import Surroundings, reconciled
from coordinator.streams_groups.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    topology_record,
)
from coordinator.streams_groups.settings import RACK_TAGS
from coordinator.streams_groups.target import Standing, assign_later, assign_now, is_small
from coordinator.streams_groups.tasks import NO_OFFSETS, NO_TASKS, SaidTasks, Tasks
from coordinator.streams_groups.topology import StatusCode, Topology, configure, topology_of
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.ports import Reply
    from coordinator.streams_groups.heartbeats.departures import Departures
    from coordinator.streams_groups.shard_parts import ShardParts
    from coordinator.streams_groups.topology import ConfiguredTopology
    from protocol.messages.streams_groups import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )

logger = logging.getLogger(__name__)

TAGS_STATUS_SINCE = 1
"""The version from which on clients know MISSING_CLIENT_TAGS."""


class _Heartbeat(NamedTuple):
    """One heartbeat of a member that stays or joins."""

    request: StreamsGroupHeartbeatRequest
    caller: HeartbeatCaller
    group: StreamsGroup
    effects: Effects
    now_ms: int
    response: StreamsGroupHeartbeatResponse
    """The answer, which gets its fields one after the other."""
    arrival: Arrival
    is_id_known: bool
    """True if there was a group of this id, also of another kind."""

    @property
    def is_joining(self) -> bool:
        return self.request.member_epoch == JOINING_EPOCH

    @property
    def said(self) -> SaidTasks:
        request = self.request
        return SaidTasks(request.active_tasks, request.standby_tasks, request.warmup_tasks)


class _Epoch(NamedTuple):
    """The group after a heartbeat, as far as the target depends on it."""

    number: int
    topology: ConfiguredTopology
    configs: Mapping[str, str]


class Heartbeats:
    """Decides on heartbeats for the streams groups of a shard."""

    def __init__(
        self,
        parts: ShardParts,
        group_for: Callable[[StreamsGroupHeartbeatRequest, Effects], StreamsGroup],
        departures: Departures,
    ) -> None:
        """`group_for` finds or makes the group of a request, or raises ApiError."""
        self._parts = parts
        self._group_for = group_for
        self._departures = departures

    def heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply: Reply[Outcome],
        now_ms: int,
    ) -> Effects:
        """Decide on one heartbeat that passed `check_request`."""
        effects = Effects()
        try:
            group = self._group_for(request, effects)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                outcome = self._departures.leave(group, request, effects)
            else:
                response = answer(request.member_id, 0, 0)
                is_id_known = request.group_id in self._parts.groups or bool(effects.records)
                arrival = arrive(group, request, self._parts.settings.max_size, effects)
                outcome = self._stay(
                    _Heartbeat(
                        request, caller, group, effects, now_ms, response, arrival, is_id_known
                    )
                )
        except ApiError as error:
            failed = Effects()
            failed.answer(reply, refused(error))
            return failed
        effects.answer_when_committed(reply, outcome, refuse)
        return effects

    def end_delay(self, group_id: str, now_ms: int) -> Effects:
        """Assign to the members of a new group at the end of its initial delay."""
        effects = Effects()
        self._parts.delays.ended(group_id)
        group = self._parts.groups.find(group_id)
        if group is None or not group.members or group.memory.configured is None:
            return effects  # the next heartbeat does it
        epoch = _Epoch(group.epoch, group.memory.configured, group.assignment_configs)
        if group.epoch > group.assignment_epoch:
            standing = Standing(group.members, group.targets)
            self._assign(group, standing, epoch, effects, now_ms)
        return effects

    def _stay(self, beat: _Heartbeat) -> Outcome:
        request, group, member = beat.request, beat.group, beat.arrival.member
        updated = updated_member(member, request, beat.caller)
        if updated != member:
            beat.effects.records.append(member_record(group.group_id, updated))
        epoch = self._epoch(beat, updated, has_changed=must_assign(member, updated))
        if request.task_offsets is not None or request.task_end_offsets is not None:
            known = group.memory.task_offsets
            known[member.member_id] = known.get(member.member_id, NO_OFFSETS).after(request)
            if not self._parts.groups.holds(group):
                beat.effects.on_replayed = partial(self._remember_offsets, group)
        target_epoch, target = self._target(beat, updated, epoch)
        stepped = self._reconcile(beat, updated, target_epoch, target)
        if beat.arrival.replaced_id is not None:
            self._parts.watches.forget_member(group.group_id, beat.arrival.replaced_id)
        self._parts.watches.touch(group.group_id, stepped.member_id)
        if request.shutdown_application:
            group.memory.request_shutdown(request.member_id)
        self._tell(beat, stepped, epoch)
        problem = epoch.topology.problem
        return Outcome(beat.response, epoch.topology.missing if problem is not None else {})

    def _remember_offsets(self, group: StreamsGroup, now_ms: int) -> Effects:  # noqa: ARG002
        """Have the offsets known to the group that records have made since."""
        made = self._parts.groups.find(group.group_id)
        if made is not None:
            made.memory.task_offsets |= group.memory.task_offsets
        return Effects()

    # The topology and the epoch

    def _topology(self, beat: _Heartbeat, updated: StreamsMember) -> Topology:
        """The group's topology, which the first member sets."""
        known, said = beat.group.topology, beat.request.topology
        if known is None:
            if said is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has no topology.")
            topology = topology_of(said)
            beat.effects.records.append(topology_record(beat.group.group_id, topology))
            return topology
        is_older = said is None or said.epoch < known.epoch
        if said is not None and not is_older and not known.is_same_as(topology_of(said)):
            raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        if updated.topology_epoch < known.epoch:
            detail = (
                f"The member's topology epoch {updated.topology_epoch} is behind the group's "
                f"topology epoch {known.epoch}."
            )
            note_status(beat.response, StatusCode.STALE_TOPOLOGY, detail)
        return known

    def _epoch(self, beat: _Heartbeat, updated: StreamsMember, *, has_changed: bool) -> _Epoch:
        """Return the group's epoch after this heartbeat, with its parts."""
        group, memory = beat.group, beat.group.memory
        topology = self._topology(beat, updated)
        must_bump, metadata_hash = has_changed, group.metadata_hash
        revision = self._parts.topics.revision
        has_expired = memory.checked_revision != revision or group.epoch < memory.checked_epoch
        must_look = memory.configured is None or has_expired
        if must_look:
            metadata_hash = self._parts.hashes.of_group(topology.required_topics)
            must_bump = must_bump or metadata_hash != group.metadata_hash
            if memory.configured is None or metadata_hash != group.metadata_hash:
                memory.configured = self._configured(topology)
                memory.endpoints.clear()
        configured = memory.configured
        assert configured is not None, "it has been looked at"
        validated = NOT_VALIDATED
        if configured.is_ready:
            validated = topology.epoch
            check_tasks(configured.subtopologies, beat.said)
        if must_look:
            memory.checked_revision, memory.checked_epoch = revision, group.epoch
        configs = self._parts.settings.assignment_configs_of(group.group_id)
        must_bump = must_bump or validated != group.validated_topology_epoch
        if not must_bump and configs == group.assignment_configs:
            return _Epoch(group.epoch, configured, configs)
        epoch = group.epoch + 1
        record = epoch_record(group.group_id, epoch, metadata_hash, validated, configs)
        beat.effects.records.append(record)
        memory.checked_epoch = epoch
        return _Epoch(epoch, configured, configs)

    def _configured(self, topology: Topology) -> ConfiguredTopology:
        configured = configure(topology, self._parts.topics)
        limit = self._parts.settings.max_tasks
        if configured.task_count > limit:
            raise invalid_topology(
                f"The topology has {configured.task_count} tasks, which is more than {limit}."
            )
        return configured

    # The target

    def _target(self, beat: _Heartbeat, updated: StreamsMember, epoch: _Epoch) -> tuple[int, Tasks]:
        """The epoch of the target assignment after this heartbeat, and the member's part."""
        group, parts = beat.group, self._parts
        group_id = group.group_id
        delay_ms = parts.settings.initial_rebalance_delay_of(group_id)
        if not group.members and delay_ms > 0:
            parts.delays.start(group_id, delay_ms)
        if group_id in parts.delays:
            detail = "Assignment delayed due to the configured initial rebalance delay."
            note_status(beat.response, StatusCode.ASSIGNMENT_DELAYED, detail)
            return group.assignment_epoch, NO_TASKS
        standing = beat.arrival.standing(group, updated)
        last = group.assignment_epoch, standing.targets.get(updated.member_id, NO_TASKS)
        if group.assignment_epoch >= epoch.number or group.memory.is_assigning:
            return last
        interval_ms = parts.settings.assignment_interval_of(group_id)
        if group.was_assigned_within(interval_ms, beat.now_ms):
            detail = "Assignment delayed due to the configured assignment interval."
            note_status(beat.response, StatusCode.ASSIGNMENT_DELAYED, detail)
            return last
        assignment = self._assign(group, standing, epoch, beat.effects, beat.now_ms)
        if assignment is None:
            return last
        return epoch.number, assignment.get(updated.member_id, NO_TASKS)

    def _assign(
        self,
        group: StreamsGroup,
        standing: Standing,
        epoch: _Epoch,
        effects: Effects,
        now_ms: int,
    ) -> Mapping[str, Tasks] | None:
        """Make the target assignment; None if that is done in steps."""
        group_id = group.group_id
        if not is_small(group, epoch.topology):
            group.memory.is_assigning = True
            job = assign_later(self._parts.groups, group_id, epoch.configs, now_ms)
            effects.jobs.append(job)
            return None
        assignment = assign_now(group, standing, epoch.topology, epoch.configs, effects)
        effects.records.append(target_epoch_record(group_id, epoch.number, now_ms))
        logger.info("group %s: tasks assigned for epoch %d", group_id, epoch.number)
        return assignment

    # What it owns

    def _reconcile(
        self, beat: _Heartbeat, member: StreamsMember, target_epoch: int, target: Tasks
    ) -> StreamsMember:
        group, watches = beat.group, self._parts.watches
        around = Surroundings(group, target_epoch, target, beat.said.tasks)
        stepped = reconciled(member, around)
        if stepped == member:
            if member.state is MemberState.UNREVOKED_TASKS:
                watches.resume_revocation(group.group_id, member)
            return member
        beat.effects.records.append(current_record(group.group_id, stepped))
        if stepped.state is MemberState.UNREVOKED_TASKS:
            watches.await_revocation(group.group_id, stepped)
        else:
            watches.end_revocation(group.group_id, stepped.member_id)
        return stepped

    def _tell(self, beat: _Heartbeat, member: StreamsMember, epoch: _Epoch) -> None:
        """Complete the answer."""
        group, response, topology = beat.group, beat.response, epoch.topology
        memory, settings = group.memory, self._parts.settings
        response.member_epoch = member.member_epoch
        response.heartbeat_interval_ms = settings.heartbeat_interval_of(group.group_id)
        response.task_offset_interval_ms = settings.task_offset_interval_of(group.group_id)
        response.acceptable_recovery_lag = settings.acceptable_recovery_lag_of(group.group_id)
        has_other_tasks = self._note_endpoint(beat, member)
        if beat.is_joining or has_other_tasks:
            tell_assignment(response, member.assigned)
        elif beat.said.tasks is not None and not beat.said.tasks.contain(member.assigned):
            tell_assignment(response, member.assigned)  # a response with it may be lost
        if memory.endpoint_epoch != beat.request.endpoint_information_epoch:
            members = beat.arrival.standing(group, member).members.values()
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                group, members, topology, self._parts.topics
            )
        if beat.is_id_known:
            response.endpoint_information_epoch = memory.endpoint_epoch
        if topology.problem is not None:
            note_status(response, *topology.problem)
        if memory.shutdown_member_id is not None:
            detail = (
                f"Streams group member {memory.shutdown_member_id} encountered a fatal error and "
                "requested a shutdown for the entire application."
            )
            note_status(response, StatusCode.SHUTDOWN_APPLICATION, detail)
        missing = missing_tags(member, epoch.configs)
        if missing and beat.caller.api_version >= TAGS_STATUS_SINCE:
            detail = (
                "Missing required client tags for rack-aware standby assignment: "
                f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your "
                "Streams config."
            )
            note_status(response, StatusCode.MISSING_CLIENT_TAGS, detail)

    @staticmethod
    def _note_endpoint(beat: _Heartbeat, member: StreamsMember) -> bool:
        """Note a change of the member's endpoint, for others; return whether its tasks changed."""
        memory, (before, replaced_id) = beat.group.memory, beat.arrival
        has_other_tasks = member.assigned != before.assigned
        has_moved = member.endpoint != before.endpoint
        if beat.is_joining or has_other_tasks or has_moved:
            memory.endpoints.pop(member.member_id, None)
        if replaced_id is not None:
            memory.endpoints.pop(replaced_id, None)
        if has_moved or (has_other_tasks and member.endpoint is not None):
            memory.endpoint_epoch += 1
        return has_other_tasks


def missing_tags(member: StreamsMember, configs: Mapping[str, str]) -> list[str]:
    """The tags by which standby replicas are to be spread that a member does not have."""
    wanted = configs.get(RACK_TAGS, "")
    return [tag for tag in wanted.split(",") if tag not in member.tags] if wanted else []
