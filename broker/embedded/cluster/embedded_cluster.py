"""Several brokers for tests, in one process, without ZooKeeper and without Java."""

from __future__ import annotations

import contextlib
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Self

from broker.embedded.cluster.cluster_broker import ClusterBroker
from broker.embedded.cluster.cluster_time import ClusterTime, wait_until
from broker.embedded.cluster.metadata_ensemble import EnsembleStore, MetadataEnsemble
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.log_lines import LogLines
from broker.embedded.machine.own_directory import remove_own_directory
from broker.embedded.machine.reserved_port import ReservedPort
from broker.embedded.machine.turned_time import TurnedTime, time_span
from broker.embedded.operations import PRINCIPAL
from broker.embedded.settings import (
    QUICK,
    BrokerSettings,
    check_brokers,
    make_directory,
    secured,
    settled_choices,
    stated,
    warn_of_unknown_keys,
    with_super_users,
)
from broker.embedded.stored_records import stored_records
from controller.znodes import CONTROLLER, decode_controller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from broker.embedded.security import Security
    from broker.embedded.settings import Protocol, Storage, Value
    from broker.embedded.stored_records import StoredRecord

STORE: Final = "embedded-cluster:2181"
"""Value of `zookeeper.connect`: it makes a broker one of several. Nothing connects there."""
BROKERS_THEMSELVES: Final = "User:ANONYMOUS"
"""Principal on the brokers' own listener; ACLs that distinguish it need `security`."""
SESSION_KEY: Final = "zookeeper.session.timeout.ms"
CLUSTER: Final[Mapping[str, Value]] = {
    "zookeeper.connect": STORE,
    SESSION_KEY: 2_000,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "replica.lag.time.max.ms": 2_000,
    "replica.fetch.wait.max.ms": 100,
    "replica.fetch.backoff.ms": 50,
    "replica.socket.timeout.ms": 2_000,
    "controller.socket.timeout.ms": 2_000,
    "controlled.shutdown.retry.backoff.ms": 100,
}
"""A failure shows in two seconds, not in ten or thirty."""


class EmbeddedCluster:
    """Brokers 0, 1, 2 and so on, from `start` to `stop`; `with` does both."""

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, Value] | None = None,
        *,
        storage: Storage = "disk",
        security: Protocol | None = None,
    ) -> None:
        """`config` has keys of `server.properties`, for all of them; `security` is of clients."""
        check_brokers(brokers)
        choices = settled_choices(storage, security)
        warn_of_unknown_keys(config)
        replicas = {
            name: min(3, brokers) for name in CLUSTER if name.endswith("replication.factor")
        }
        fewest = {name: max(1, min(2, brokers - 1)) for name in CLUSTER if name.endswith("min.isr")}
        whole = stated({**QUICK, **CLUSTER, **replicas, **fewest, **(config or {})})
        self._config = with_super_users(whole, PRINCIPAL, BROKERS_THEMSELVES)
        self._count = brokers
        self._storage = choices.storage
        self._protocol = choices.security
        self._security: Security | None = None
        self._process = os.getpid()
        self._resources = contextlib.ExitStack()
        self.brokers: list[ClusterBroker] = []
        """By their ids. There are none before `start`."""

    # Its life

    def start(self) -> Self:
        """Start all brokers; returns when each knows all others."""
        if self.brokers:
            raise EmbeddedBrokerError("the cluster was started already")
        self._process = os.getpid()
        directory = make_directory(self._storage, "cluster")
        finalizer = weakref.finalize(self, _remove, self._process, directory)
        self._resources.callback(finalizer)
        self._security = secured(self._protocol, directory)
        self._ensemble = MetadataEnsemble(int(self._config[SESSION_KEY]) / 1000)
        self._time = ClusterTime(self._ensemble)
        try:
            self.brokers = [self._make(number, directory) for number in range(self._count)]
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Have all stop, and leave nothing behind."""
        if not self.is_ours:
            return
        brokers, self.brokers = self.brokers, []
        with self._resources:
            for broker in brokers:  # none of which shall warn of the others' end
                broker.ask("fall_silent")
            for broker in brokers:  # in any order: their data is removed
                broker.end()
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Its properties

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers for clients: all brokers, `host:port,host:port`."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def client_config(self) -> dict[str, str]:
        """Configuration for a client of librdkafka (confluent-kafka)."""
        one = self.brokers[0].client_config
        return {**one, "bootstrap.servers": self.bootstrap_servers}

    @property
    def kafka_python_config(self) -> dict[str, str]:
        """Constructor arguments for a client of kafka-python."""
        one = self.brokers[0].kafka_python_config
        return {**one, "bootstrap_servers": self.bootstrap_servers}

    @property
    def security(self) -> Security | None:
        """Protocol, certificate, user and password for clients; None if anyone may connect."""
        return self._security

    def get_bootstrap_server(self) -> str:
        """As testcontainers call it."""
        return self.bootstrap_servers

    @property
    def is_ours(self) -> bool:
        """True unless it was started by a process of which this is a fork."""
        return self._process == os.getpid()

    @property
    def log_lines(self) -> list[str]:
        """The newest of the brokers' log lines, by broker."""
        return [line for one in self.brokers for line in one.log_lines]

    @property
    def live(self) -> list[ClusterBroker]:
        """The brokers that run and are not paused."""
        return [one for one in self.brokers if not one.is_paused and one.is_running]

    def controller(self) -> ClusterBroker:
        """The active controller, once there is one. Raises NotReachedError."""
        return self._first("a controller", self._is_controller)

    def leader_of(self, topic: str, partition: int = 0) -> ClusterBroker:
        """The broker that leads a partition, once there is one. Raises NotReachedError.

        Raises EmbeddedBrokerError at once if there is no such topic or partition.

        If a leader that was cut off still believes to lead, the later one is returned.
        """
        what = f"a leader of {topic}-{partition}"
        if not self.brokers:
            raise EmbeddedBrokerError("the cluster was not started")
        self._ensemble.check_partition(topic, partition)
        self._first(what, lambda broker: broker.leads(topic, partition))
        return max(self.live, key=lambda broker: broker.leads_in(topic, partition))

    # Topics and groups

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, Value] | None = None,
    ) -> None:
        """Create a topic, on three live brokers if there are; all that are reached know it then."""
        controller = self.controller()
        if replication_factor is None:  # the controller takes a while to miss one that was killed
            standing = sum(one.is_paused or one.is_running for one in self.brokers)
            replication_factor = min(3, standing, len(controller.ask("live_brokers")))
        controller.ask("create_topic", name, partitions, replication_factor, stated(config))

        def is_known() -> bool:
            cut_off = self._ensemble.unreachable
            reached = [broker for broker in self.live if broker.broker_id not in cut_off]
            leaders = [broker.ask("leaders", name) for broker in reached]
            return all(
                len(one) == partitions and min(one.values(), default=-1) >= 0 for one in leaders
            )

        wait_until(f"all brokers to know the leaders of {name}", is_known)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.controller().ask("delete_topic", name)

    def records(
        self, topic: str, partition: int | None = None, *, committed_only: bool = False
    ) -> list[StoredRecord]:
        """Records in the logs of a topic's leaders, by partition and offset."""
        known = self.live[0].ask("topics")
        if topic not in known:
            raise EmbeddedBrokerError(f"there is no topic {topic}")
        found: list[StoredRecord] = []
        for index in range(known[topic]) if partition is None else [partition]:
            leader = self.leader_of(topic, index)
            found += stored_records(leader.ask("read", topic, index, committed_only))
        return found

    def wait_for(self, group: str, lag: int = 0, timeout: float = 10.0) -> None:
        """Wait until a group has committed all but `lag` records. Raises NotReachedError."""

        def is_reached() -> bool:
            committed = next(filter(None, self._committed(group)), None)
            if not committed:
                return False
            ends: dict[tuple[str, int], int] = {}
            for broker in self.live:
                ends.update(broker.ask("end_offsets", list(committed)))
            behind = (max(ends[at] - committed[at], 0) for at in committed if at in ends)
            return len(ends) == len(committed) and sum(behind) <= lag

        wait_until(f"group {group} to be within {lag} records", is_reached, timeout)

    def _committed(self, group: str) -> Iterator[dict[tuple[str, int], int] | None]:
        for broker in self.live:
            yield broker.ask("committed_offsets", group)

    def advance(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advance the clocks of all brokers; returns when replicas are in sync again.

        Sessions of brokers that are paused or cut off expire if that exceeds the session timeout.
        """
        self._time.advance(self.brokers, time_span(seconds, hours, days))

    # Failures

    def kill(self, broker: ClusterBroker | int) -> ClusterBroker:
        """End a broker as SIGKILL does; its session ends at once, so that others take over."""
        killed = self._broker(broker, "broker")
        killed.kill()
        return killed

    def partition_network(
        self, minority: list[int] | int, *, from_store: bool = True
    ) -> CutNetwork:
        """Cut some brokers off from all others. As a context, until its end.

        Clients reach all of them. The metadata store is with the others, unless `from_store` is
        false: after `zookeeper.session.timeout.ms`, those that are cut off no longer lead.
        """
        named = minority if isinstance(minority, list | tuple | set) else [minority]
        cut_off = {self._broker(one, "minority").broker_id for one in named}
        if not cut_off:
            raise ValueError("minority names no broker")
        if from_store:
            self._ensemble.unreachable |= cut_off
        for broker in self.brokers:
            is_cut_off = broker.broker_id in cut_off
            others = [one for one in self.brokers if (one.broker_id in cut_off) != is_cut_off]
            broker.ask("cut_off_from", {one.own_port for one in others})
        return CutNetwork(self)

    def restore(self) -> None:
        """Have all brokers be well again, and the network whole."""
        for broker in self.brokers:
            broker.resume()
        self.heal_network()
        for broker in self.brokers:
            broker.restore()
        self._wait_for_all()

    def heal_network(self) -> None:
        """End all partitions of the network."""
        if self.brokers:
            self._ensemble.unreachable.clear()
            for broker in self.brokers:
                broker.ask("cut_off_from", set())

    def _broker(self, which: ClusterBroker | int, argument: str) -> ClusterBroker:
        """One of ours, itself or by its id. Raises ValueError or TypeError about an argument."""
        if isinstance(which, bool) or not isinstance(which, ClusterBroker | int):
            raise TypeError(f"{argument}: {which!r} is neither a broker nor the id of one")
        for broker in self.brokers:
            if which in (broker, broker.broker_id):
                return broker
        ids = ", ".join(str(broker.broker_id) for broker in self.brokers) or "none"
        raise ValueError(f"{argument}: {which} is no broker of this cluster; there are: {ids}")

    def _make(self, number: int, directory: Path) -> ClusterBroker:
        ports = (ReservedPort(), ReservedPort())
        for port in ports:
            self._resources.callback(port.release)
        own = directory / f"broker-{number}"
        own.mkdir()
        settings = BrokerSettings(
            number, ports[0].number, own, self._config, None, ports[1].number, self._security
        )
        stores: list[EnsembleStore] = []

        def open_store() -> EnsembleStore:
            stores[:] = [EnsembleStore(self._ensemble, number)]
            return stores[0]

        def end_session() -> None:
            for store in stores:
                store.end()

        from broker.embedded.engines.on_thread import ThreadEngine  # noqa: PLC0415 - as in EmbeddedBroker
        from broker.embedded.hosted_broker import Surroundings  # noqa: PLC0415

        lines = LogLines(f"broker {number}")
        turned = self._time.turned[number] = TurnedTime()
        engine = ThreadEngine(settings, Surroundings(lines, turned, open_store, end_session))
        return ClusterBroker(settings, engine)

    def _start_all(self) -> None:
        with ThreadPoolExecutor(self._count) as starting:
            for started in [starting.submit(broker.start) for broker in self.brokers]:
                started.result()
        self._wait_for_all()
        controller = self.controller()
        controller.ask("finalise_features")
        controller.ask("create_internal_topics")  # now: later a broker may be dead
        levels = controller.ask("features")
        wait_until(
            "all brokers to know the features",
            lambda: all(broker.ask("features") == levels for broker in self.brokers),
        )

    def _wait_for_all(self) -> None:
        everyone = list(range(self._count))
        wait_until(
            "all brokers to know each other",
            lambda: all(broker.ask("live_brokers") == everyone for broker in self.brokers),
        )

    def _is_controller(self, broker: ClusterBroker) -> bool:
        """Return whether the store has it as the controller, and the broker knows."""
        node = self._ensemble.tree.nodes.get(CONTROLLER)
        is_elected = node is not None and decode_controller(node.data) == broker.broker_id
        return is_elected and bool(broker.ask("is_controller"))

    def _first(self, what: str, is_it: Callable[[ClusterBroker], bool]) -> ClusterBroker:
        found: list[ClusterBroker] = []

        def look() -> bool:
            found[:] = [broker for broker in self.live if is_it(broker)]
            return bool(found)

        wait_until(what, look)
        return found[0]


class CutNetwork:
    """A network in two parts, until it is healed or the context ends."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.heal = cluster.heal_network

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


def _remove(process: int, directory: Path) -> None:
    """At the latest when the interpreter ends, in the process that made the directory."""
    if process == os.getpid():
        remove_own_directory(directory)
