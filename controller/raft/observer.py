"""Decisions of an observer: whom to ask for what next, and what follows from an answer.

Any server answers a Fetch with the newest epoch and leader that it knows of: so a leader is found.
A leader that was not heard of for the fetch timeout, or is left alone after a failure, is looked
for in the same way.

Source: `KafkaRaftClient` in Apache Kafka. One thing differs: a server whose answer is of no use is
left alone for the retry back-off, where Apache asks the next one, or the same, at once.
"""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from controller.raft.effects import (
    NO_LEADER,
    AbandonSnapshot,
    AdvanceHighWatermark,
    Append,
    BeginSnapshot,
    Effect,
    Election,
    ExtendSnapshot,
    ReplaceLog,
    SaveElection,
    Truncate,
)
from controller.raft.errors import QuorumError
from controller.raft.requests import (
    fetch_request,
    fetched_partition,
    named_leader,
    snapshot_part,
    snapshot_request,
)
from controller.raft.states import TRANSITIONS, Event, State
from protocol.errors import ErrorCode
from protocol.messages.fetch_snapshot import FetchSnapshotResponse
from protocol.metadata_log.snapshots import SnapshotId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.raft.destinations import Address, Destinations
    from controller.raft.log_view import LogView
    from controller.raft.requests import (
        FetchedPartition,
        Named,
        Replica,
        RequestLimits,
        SnapshotPart,
    )
    from protocol.messages.fetch import FetchRequest, FetchResponse
    from protocol.messages.fetch_snapshot import FetchSnapshotRequest

logger = logging.getLogger(__name__)

ASKED_ANOTHER: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""The server does not lead, or not in the epoch of the request."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request; then `answered` or `unanswered`, before anything else."""

    address: Address
    request: FetchRequest | FetchSnapshotRequest


@dataclass(frozen=True, slots=True)
class Rest:
    """Ask nobody before this moment."""

    until_ms: int


class Verdict(enum.Enum):
    """Use of an answer, by the epoch and the leader that it names."""

    USABLE = enum.auto()
    """It is the leader's, of this epoch."""
    HEEDED = enum.auto()
    """It names a leader, or an epoch, that was news; what else it says is not looked at."""
    USELESS = enum.auto()


class Download(NamedTuple):
    """A snapshot of the leader, and how many bytes of it have come."""

    snapshot_id: SnapshotId
    size: int = 0


class Observer:
    """One at a time: a request, its answer, the effects of that. Times are `now_ms`, monotonic."""

    def __init__(
        self,
        replica: Replica,
        destinations: Destinations,
        limits: RequestLimits,
        fetch_timeout_ms: int,
        election: Election,
    ) -> None:
        """`election` is what `quorum-state` says, or else the last epoch of the log."""
        self.election = election
        self.state = State.UNATTACHED
        self.leader_address: Address | None = None
        """None while UNATTACHED."""
        self.voter_addresses: Mapping[int, Address] = {}
        """For servers that name a leader and not where it is; the owner may replace it."""
        self._replica = replica
        self._destinations = destinations
        self._limits = limits
        self._fetch_timeout_ms = fetch_timeout_ms
        self._given_up_at_ms = 0
        """End of the fetch timeout since the last answer of the leader."""
        self._download: Download | None = None
        self._refusal: ErrorCode | None = None
        """The last one, so that each is logged once."""

    def next_request(self, log: LogView, now_ms: int) -> Ask | Rest:
        """The next thing to ask, or a rest."""
        leader = self.leader_address
        is_heard_of = leader is not None and now_ms < self._given_up_at_ms
        if leader is not None and is_heard_of and not self._destinations.is_paused(leader, now_ms):
            if self._download is None:
                return self._fetch(leader, log)
            return Ask(
                leader,
                snapshot_request(self._replica, self.election.epoch, self._download, self._limits),
            )
        address = self._destinations.any_bootstrap(now_ms)
        if address is None:
            return Rest(self._destinations.next_bootstrap_ms())
        return self._fetch(address, log)

    def unanswered(self, ask: Ask, now_ms: int) -> None:
        """The connection failed, or the answer did not come in time."""
        self._destinations.failed(ask.address, now_ms)

    def left_out(self, ask: Ask, now_ms: int) -> None:
        """Not all records of the answer were appended: they are fetched again, after a pause."""
        self._destinations.refused(ask.address, now_ms)

    def answered(
        self,
        ask: Ask,
        response: FetchResponse | FetchSnapshotResponse,
        log: LogView,
        now_ms: int,
    ) -> list[Effect]:
        """Take an answer, to what `log` was asked with; returns effects. Raises QuorumError."""
        effects: list[Effect] = []
        if response.error_code:
            is_of_use = self._refused(ask, ErrorCode(response.error_code))
        elif isinstance(response, FetchSnapshotResponse):
            is_of_use = self._take_part(response, effects, now_ms)
        else:
            is_of_use = self._take_fetch(response, log, effects, now_ms)
        if is_of_use:
            self._refusal = None
            self._destinations.answered(ask.address)
        else:
            self._destinations.refused(ask.address, now_ms)
        return effects

    # Fetch

    def _fetch(self, address: Address, log: LogView) -> Ask:
        return Ask(address, fetch_request(self._replica, self.election.epoch, log, self._limits))

    def _take_fetch(
        self, response: FetchResponse, log: LogView, effects: list[Effect], now_ms: int
    ) -> bool:
        """Returns whether the answer was of use, as all that follow do."""
        answer = fetched_partition(response)
        if answer is None:
            return False
        named = named_leader(answer.current_leader, response.node_endpoints, self.voter_addresses)
        code = ErrorCode(answer.error_code)
        verdict = self._heed(code, named, effects, now_ms)
        if verdict is not Verdict.USABLE:
            return verdict is Verdict.HEEDED
        if code is not ErrorCode.NONE:
            return self._refused_with("Fetch", code)
        self._given_up_at_ms = now_ms + self._fetch_timeout_ms
        return self._take_log(answer, log, effects)

    def _take_log(self, answer: FetchedPartition, log: LogView, effects: list[Effect]) -> bool:
        diverging, snapshot_id = answer.diverging_epoch, answer.snapshot_id
        if diverging.epoch >= 0:
            return self._diverged(diverging.epoch, diverging.end_offset, log, effects)
        if snapshot_id.epoch >= 0 and snapshot_id.end_offset >= 0:
            needed = SnapshotId(snapshot_id.end_offset, snapshot_id.epoch)
            return self._need_snapshot(needed, log, effects)
        if snapshot_id.epoch >= 0 or snapshot_id.end_offset >= 0:
            logger.error("snapshot id %r of the leader is half an id", snapshot_id)
            return False
        return self._append(answer, effects)

    def _append(self, answer: FetchedPartition, effects: list[Effect]) -> bool:
        records = cast("memoryview", answer.records) or memoryview(b"")
        if records:
            effects.append(Append(records, self.election.epoch))
        if answer.high_watermark >= 0:
            effects.append(AdvanceHighWatermark(answer.high_watermark))
        return True

    def _diverged(self, epoch: int, end_offset: int, log: LogView, effects: list[Effect]) -> bool:
        """Cut the log. Below the high watermark that would undo what is committed: fatal."""
        offset = log.agreed_end(epoch, end_offset)
        if min(offset, end_offset) < log.high_watermark:
            raise QuorumError(
                f"the leader of epoch {self.election.epoch} ends epoch {epoch} at offset "
                f"{end_offset}, which would cut the metadata log at {min(offset, end_offset)}, "
                f"below the high watermark {log.high_watermark}"
            )
        if offset >= log.end_offset:
            return False
        effects.append(Truncate(offset))
        return True

    # Snapshots

    def _need_snapshot(self, needed: SnapshotId, log: LogView, effects: list[Effect]) -> bool:
        """Download it, unless it is here already or on its way."""
        if needed.end_offset < log.high_watermark:
            raise QuorumError(
                f"the leader of epoch {self.election.epoch} offers a snapshot that ends at offset "
                f"{needed.end_offset}, below the high watermark {log.high_watermark}"
            )
        if self._download is not None:
            if self._download.snapshot_id == needed:
                return False
            self._end_download(effects)
        if log.snapshot == needed:
            if needed.end_offset <= log.end_offset:
                return False
            effects.append(ReplaceLog(needed))
            return True
        self._move(Event.SNAPSHOT_NEEDED)
        self._download = Download(needed)
        effects.append(BeginSnapshot(needed))
        return True

    def _take_part(
        self, response: FetchSnapshotResponse, effects: list[Effect], now_ms: int
    ) -> bool:
        part, download = snapshot_part(response), self._download
        assert download is not None, "a piece of a snapshot that was not asked for"
        if part is None:
            return False
        named = named_leader(part.current_leader, response.node_endpoints, self.voter_addresses)
        code = ErrorCode(part.error_code)
        verdict = self._heed(code, named, effects, now_ms)
        if verdict is not Verdict.USABLE:
            return verdict is Verdict.HEEDED
        found = SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        if code is ErrorCode.SNAPSHOT_NOT_FOUND or min(found) < 0:
            logger.info("snapshot %s is gone at the leader", _shown(download.snapshot_id))
            self._given_up_at_ms = now_ms + self._fetch_timeout_ms
            self._end_download(effects)
            return True
        if code is not ErrorCode.NONE:
            return self._refused_with("FetchSnapshot", code)
        self._given_up_at_ms = now_ms + self._fetch_timeout_ms
        if found != download.snapshot_id or part.position != download.size:
            raise QuorumError(
                f"the leader sent snapshot {_shown(found)} from byte {part.position} on, "
                f"not {_shown(download.snapshot_id)} from byte {download.size} on"
            )
        return self._extend(part, download, effects)

    def _extend(self, part: SnapshotPart, download: Download, effects: list[Effect]) -> bool:
        data = cast("memoryview", part.unaligned_records) or memoryview(b"")
        size = download.size + len(data)
        if size > part.size:
            raise QuorumError(f"the leader sent {size} bytes of a snapshot of {part.size}")
        if data:
            effects.append(ExtendSnapshot(data))
        self._download = download._replace(size=size)
        if size < part.size:
            return len(data) > 0
        self._download = None
        self._move(Event.SNAPSHOT_ENDED)
        effects.append(ReplaceLog(download.snapshot_id))
        return True

    def _end_download(self, effects: list[Effect]) -> None:
        """Give up on the one that is under way."""
        self._download = None
        self._move(Event.SNAPSHOT_ENDED)
        effects.append(AbandonSnapshot())

    # Elections

    def _heed(self, code: ErrorCode, named: Named, effects: list[Effect], now_ms: int) -> Verdict:
        """Go by the leader and the epoch that a server names, if they are news."""
        own, found = self.election, named.election
        if found.epoch < own.epoch or code is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return Verdict.USELESS
        if found.epoch > own.epoch:
            self._adopt(named, effects, now_ms)
            return Verdict.HEEDED
        if NO_LEADER not in (own.leader_id, found.leader_id) and found != own:
            raise QuorumError(
                f"epoch {own.epoch} has two leaders, {own.leader_id} and {found.leader_id}"
            )
        is_found = False
        if self.state is State.UNATTACHED and found.leader_id != NO_LEADER:
            is_found = named.address is not None
            self._adopt(named, effects, now_ms)
        if code is ErrorCode.INVALID_REQUEST:
            raise QuorumError("a server of the quorum calls a request of this node's invalid")
        if code in ASKED_ANOTHER or self.state is State.UNATTACHED:
            return Verdict.HEEDED if is_found else Verdict.USELESS
        return Verdict.USABLE

    def _adopt(self, named: Named, effects: list[Effect], now_ms: int) -> None:
        if self._download is not None:
            self._end_download(effects)
        if named.election != self.election:
            self.election = named.election
            effects.append(SaveElection(named.election))
        self.leader_address = None if named.election.leader_id == NO_LEADER else named.address
        if self.leader_address is None:
            self._move(Event.LEADER_LOST)
            return
        self._move(Event.LEADER_FOUND)
        self._given_up_at_ms = now_ms + self._fetch_timeout_ms
        self._destinations.answered(self.leader_address)

    def _move(self, event: Event) -> None:
        assert (self.state, event) in TRANSITIONS, (self.state, event)
        self.state = TRANSITIONS[self.state, event]
        is_attached = self.state is not State.UNATTACHED
        assert is_attached == (self.leader_address is not None), (self.state, self.leader_address)

    def _refused(self, ask: Ask, code: ErrorCode) -> bool:
        """An error for the whole request."""
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            host, port = ask.address
            raise QuorumError(f"{host}:{port} does not let this node follow the quorum")
        return self._refused_with(type(ask.request).__name__, code)

    def _refused_with(self, name: str, code: ErrorCode) -> bool:
        if code not in (ErrorCode.BROKER_NOT_AVAILABLE, self._refusal):
            logger.error("%s refused by the quorum: %s", name, code.name)
        self._refusal = code
        return False


def _shown(snapshot_id: SnapshotId) -> str:
    return f"{snapshot_id.end_offset}-{snapshot_id.epoch}"
