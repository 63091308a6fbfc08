"""Golden scenarios: replicas of one partition, without a broker, as text that a person can read.

A scenario is a file of commands. Below each, indented, stands what it came to: the effects that the
machines asked for, in the order in which they are carried out. Lines that begin with # are prose.

    brokers 1 2 3 min-isr=2      replicas with empty logs; all brokers are alive
    elect 1 isr=1,2,3 [to=2,3]   the controller stores a leader in a new epoch, and says so to all
    repeat [epoch=0] [to=1]      the controller says again what it has stored, or had in that epoch
    append 1 5                   a client's records reach a broker, with acks=all
    fetch 2 [max=3]              a follower asks its leader once, and takes the answer
    answer [CODE]                the controller answers what was proposed
    pass 30001                   milliseconds pass, and every leader looks after its followers
    die 3 / return 3             the controller sees a broker go or come, and says so to all
    crash 2 keep=4 hw=2          a broker restarts with what its disk had
    configure min-isr=1          the topic's configuration changes
    logs                         show all logs: offsets, high watermark, records by epoch

`SCENARIOS=write` in the environment writes what comes out into the files, to be read before it is
committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.replication.effects import NO_OFFSET, NOTHING, Effects, Proposal, Stored
from broker.replication.replica_machine import ACKS_ALL, ReplicaMachine, ReplicaSettings
from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_LAG_MS = 30_000
INDENT = "    "
UNKNOWN_EPOCH = (-1, -1)


class ListLog:
    """A log that is a list: the leader epoch of each record."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        """Leader epochs, by offset."""
        self.noted: list[tuple[int, int]] = []
        """Leader epochs and where each begins, as a leader-epoch-checkpoint has them."""
        self.log_start_offset = 0
        self.high_watermark = 0
        self.config = TopicConfig()

    @property
    def log_end_offset(self) -> int:
        return len(self.epochs)

    @property
    def latest_epoch(self) -> int:
        return self.noted[-1][0] if self.noted else -1

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        known = [one for one, _ in self.noted if one <= epoch]
        if epoch > self.latest_epoch:
            return UNKNOWN_EPOCH
        if not known:
            return epoch, self.noted[0][1]
        ends = [begin for one, begin in self.noted if one > known[-1]]
        return known[-1], ends[0] if ends else self.log_end_offset

    def begin(self, epoch: int) -> None:
        self.noted.append((epoch, self.log_end_offset))

    def append(self, epochs: Iterable[int]) -> None:
        for epoch in epochs:
            if epoch > self.latest_epoch:
                self.begin(epoch)
            self.epochs.append(epoch)

    def truncate_to(self, offset: int) -> None:
        del self.epochs[offset:]
        self.noted = [one for one in self.noted if one[1] < offset]
        self.high_watermark = min(self.high_watermark, self.log_end_offset)

    def __str__(self) -> str:
        runs = ", ".join(
            f"{self.epochs.count(epoch)} of epoch {epoch}" for epoch in dict.fromkeys(self.epochs)
        )
        bounds = f"[{self.log_start_offset}, {self.log_end_offset}) hw {self.high_watermark}"
        return f"{bounds}: {runs or 'empty'}"


class Scenario:
    """The replicas, the controller's state and the time; `run` takes one command."""

    def __init__(self) -> None:
        self._machines: dict[int, ReplicaMachine] = {}
        self.by_broker: dict[int, ListLog] = {}
        self._alive: set[int] = set()
        self._now_ms = 1_000_000
        self._state: LeaderAndIsrPartitionState | None = None
        self._earlier: dict[int, LeaderAndIsrPartitionState] = {}
        """Earlier states, by leader epoch."""
        self._proposed: tuple[int, Proposal] | None = None
        self._commands: dict[str, Callable[..., Iterator[str]]] = {
            "brokers": self._brokers,
            "elect": self._elect,
            "repeat": self._repeat,
            "append": self._append,
            "fetch": self._fetch,
            "answer": self._answer,
            "pass": self._pass,
            "die": self._die,
            "return": self._return,
            "crash": self._crash,
            "configure": self._configure,
            "logs": self._logs,
        }

    def run(self, command: str) -> list[str]:
        """Return the output of a command, line by line."""
        name, *words = command.split()
        options = {
            key.replace("-", "_"): value
            for key, _, value in (word.partition("=") for word in words if "=" in word)
        }
        positional = [word for word in words if "=" not in word]
        return list(self._commands[name](*positional, **options)) or ["nothing"]

    def _brokers(self, *ids: str, min_isr: str = "1") -> Iterator[str]:
        for one in map(int, ids):
            self.by_broker[one] = ListLog()
            self._start(one)
        yield from self._configure(min_isr=min_isr)

    def _start(self, one: int) -> None:
        settings = ReplicaSettings(one, MAX_LAG_MS, self._alive.__contains__)
        self._machines[one] = ReplicaMachine("orders-0", self.by_broker[one], settings)
        self._alive.add(one)

    def _configure(self, *, min_isr: str = "1") -> Iterator[str]:
        config = TopicConfig(min_insync_replicas=int(min_isr))
        for one, log in self.by_broker.items():
            log.config = config
            yield from self._carry_out(one, self._machines[one].limits_changed(self._now_ms))

    def _elect(self, leader: str, *, isr: str, to: str = "") -> Iterator[str]:
        before = self._state
        self._state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=int(leader),
            leader_epoch=0 if before is None else before.leader_epoch + 1,
            partition_epoch=0 if before is None else before.partition_epoch + 1,
            isr=_numbers(isr),
            replicas=list(self._machines),
        )
        self._earlier[self._state.leader_epoch] = self._state
        yield from self._repeat(to=to)

    def _repeat(self, *, to: str = "", epoch: str = "") -> Iterator[str]:
        state = self._earlier[int(epoch)] if epoch else self._state
        assert state is not None
        for one in _numbers(to) if to else sorted(self._alive):
            machine, log = self._machines[one], self.by_broker[one]
            if machine.is_stale(state):
                yield f"{one}: stale"
                continue
            begun = machine.epoch_to_begin(state)
            if begun is not None:
                self.by_broker[one].begin(begun)
            had_waiters = machine.is_leader and log.high_watermark < log.log_end_offset
            effects = machine.assume(state, self._now_ms)
            role = "leads" if machine.is_leader else f"follows {machine.leader_id}"
            yield f"{one}: {role} in epoch {machine.leader_epoch}"
            yield from self._carry_out(one, effects)
            if effects.fail_waiters is not None and had_waiters:
                yield f"{one}: fails waiters with {effects.fail_waiters.name}"

    def _append(self, broker: str, count: str) -> Iterator[str]:
        one = int(broker)
        machine, log = self._machines[one], self.by_broker[one]
        try:
            machine.check_append(ACKS_ALL)
        except ApiError as error:
            yield f"{one}: refuses with {error.code.name}"
            return
        log.append([machine.leader_epoch] * int(count))
        yield f"{one}: log ends at {log.log_end_offset}"
        committed = (
            log.log_end_offset if machine.is_sole else machine.appended(lambda: self._now_ms)
        )
        yield from self._carry_out(one, Effects(commit_up_to=committed))

    def _fetch(self, broker: str, *, max: str = "1000") -> Iterator[str]:  # noqa: A002
        one = int(broker)
        follower, log = self._machines[one], self.by_broker[one]
        leader, theirs = self._machines[follower.leader_id], self.by_broker[follower.leader_id]
        offset = log.log_end_offset
        yield f"{one} asks {follower.leader_id} for {offset}"
        if follower.leader_epoch != leader.leader_epoch or not leader.is_leader:
            yield f"{follower.leader_id}: refuses, its leader epoch is {leader.leader_epoch}"
            return
        parting = _parting(log, theirs)
        if parting is not None:
            yield f"{follower.leader_id}: its epoch {parting[0]} ends at {parting[1]}"
            yield from self._carry_out(one, follower.diverged(*parting))
            return
        records = theirs.epochs[offset : offset + int(max)]
        effects = leader.fetched_by(one, 100 + one, offset, log.log_start_offset, self._now_ms)
        yield from self._carry_out(follower.leader_id, effects)
        log.append(records)
        if records:
            yield f"{one}: log ends at {log.log_end_offset}"
        heard = follower.heard_from_leader(theirs.high_watermark, theirs.log_start_offset)
        yield from self._carry_out(one, heard)

    def _answer(self, code: str = "NONE") -> Iterator[str]:
        assert self._proposed is not None, "nothing was proposed"
        assert self._state is not None
        (one, proposal), self._proposed = self._proposed, None
        if code == "NONE":
            self._state.isr = list(proposal.in_sync)
            self._state.partition_epoch += 1
        state = self._state
        stored = Stored(tuple(state.isr), state.leader_epoch, state.partition_epoch)
        effects = self._machines[one].decided(proposal, ErrorCode[code], stored, self._now_ms)
        yield f"{one}: in sync {_shown(self._machines[one].in_sync.committed)}"
        yield from self._carry_out(one, effects)

    def _pass(self, ms: str) -> Iterator[str]:
        self._now_ms += int(ms)
        for one, machine in self._machines.items():
            yield from self._carry_out(one, machine.tick(self._now_ms))

    def _die(self, broker: str) -> Iterator[str]:
        self._alive.discard(int(broker))
        yield from self._brokers_changed()

    def _return(self, broker: str) -> Iterator[str]:
        self._alive.add(int(broker))
        yield from self._brokers_changed()

    def _brokers_changed(self) -> Iterator[str]:
        for one in sorted(self._alive):
            yield from self._carry_out(one, self._machines[one].brokers_changed(self._now_ms))

    def _crash(self, broker: str, *, keep: str, hw: str) -> Iterator[str]:
        one = int(broker)
        self.by_broker[one].truncate_to(int(keep))
        self.by_broker[one].high_watermark = int(hw)
        self._start(one)
        yield f"{one}: {self.by_broker[one]}"

    def _logs(self) -> Iterator[str]:
        for one, log in self.by_broker.items():
            yield f"{one}: {log}"

    def _carry_out(self, one: int, effects: Effects) -> Iterator[str]:
        if effects is NOTHING:
            return
        log = self.by_broker[one]
        if effects.truncate_to != NO_OFFSET and effects.truncate_to < log.log_end_offset:
            log.truncate_to(effects.truncate_to)
            yield f"{one}: truncates to {effects.truncate_to}"
        if effects.commit_up_to != NO_OFFSET and effects.commit_up_to > log.high_watermark:
            log.high_watermark = effects.commit_up_to
            yield f"{one}: commits up to {effects.commit_up_to}"
        if effects.proposal is not None:
            self._proposed = one, effects.proposal
            yield f"{one}: proposes {_shown(effects.proposal.in_sync)}"


def _parting(log: ListLog, leader: ListLog) -> tuple[int, int] | None:
    """Return the point where the leader's history diverges from the follower's (KIP-595)."""
    epoch = log.latest_epoch
    if epoch < 0:
        return None
    known, end = leader.end_offset_for_epoch(epoch)
    return None if known == epoch and end >= log.log_end_offset else (known, end)


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def _shown(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
