"""The faults a cluster is put to: each begins on one broker or on ZooKeeper, lasts, and is healed.

A fault is a generator: up to its `yield` it begins, after it it heals.
"""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import TYPE_CHECKING

from tests.support.brokers.cluster import SESSION_MS, Cluster, Member
from tests.support.brokers.cut_link import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_SECONDS = SESSION_MS / 1000
MOST_BYTES_WHEN_FULL = 4096
"""A full disk: no file may grow beyond this, so every log that has more cannot be written."""


def last(chance: Random, *, beyond_session: bool = False) -> None:
    """Wait while a fault lasts: about as long as a session, or certainly longer."""
    shortest = 1.3 if beyond_session else 0.2
    time.sleep(chance.uniform(shortest, 1.7) * SESSION_SECONDS)


@contextmanager
def killed(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """SIGKILL."""
    member.process.kill()
    yield
    member.process.start()


@contextmanager
def killed_and_back(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """SIGKILL, and started again while its session lives."""
    member.process.kill()
    member.process.launch()
    yield
    member.process.wait_until_serving()


@contextmanager
def stopped(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """SIGTERM: it hands over what it leads."""
    member.process.stop()
    yield
    member.process.start()


@contextmanager
def frozen(_cluster: Cluster, member: Member, chance: Random) -> Iterator[None]:
    """SIGSTOP for longer than the session: others take over, and it does not know."""
    member.process.freeze()
    last(chance, beyond_session=True)
    yield
    member.process.thaw()


@contextmanager
def frozen_briefly(_cluster: Cluster, member: Member, chance: Random) -> Iterator[None]:
    """SIGSTOP for less than the session."""
    member.process.freeze()
    time.sleep(chance.uniform(0.1, 0.4) * SESSION_SECONDS)
    member.process.thaw()
    yield


@contextmanager
def cut_from_zookeeper(_cluster: Cluster, member: Member, chance: Random) -> Iterator[None]:
    """Cut it from ZooKeeper: it leads on after its session has ended, until it is notified."""
    member.zookeeper_link.cut(
        chance.choice([Direction.BOTH, Direction.REQUESTS, Direction.ANSWERS])
    )
    last(chance, beyond_session=True)
    yield
    member.zookeeper_link.heal()


@contextmanager
def unheard(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """Other brokers cannot reach it; it reaches them."""
    member.link.cut(Direction.REQUESTS)
    yield
    member.link.heal()


@contextmanager
def mute(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """Other brokers reach it, and get no answer."""
    member.link.cut(Direction.ANSWERS)
    yield
    member.link.heal()


@contextmanager
def each_alone(cluster: Cluster, _member: Member, _chance: Random) -> Iterator[None]:
    """No broker reaches another; all have ZooKeeper."""
    for one in cluster.members:
        one.link.cut()
    yield
    for one in cluster.members:
        one.link.heal()


@contextmanager
def disk_full(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """Fill the disk of a broker: it ends, with its only directory, and starts once freed."""
    soft, hard = resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (MOST_BYTES_WHEN_FULL, hard))
    yield
    if member.process.is_running():
        resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
    member.process.kill()
    member.process.start()


@contextmanager
def directory_lost(_cluster: Cluster, member: Member, _chance: Random) -> Iterator[None]:
    """SIGKILL, and it comes back with an empty disk while its session may live."""
    member.process.kill()
    shutil.rmtree(member.process.data_directory)
    member.process.launch()
    yield
    member.process.wait_until_serving()


@contextmanager
def all_killed(cluster: Cluster, _member: Member, _chance: Random) -> Iterator[None]:
    """SIGKILL for all three at once."""
    for member in cluster.members:
        member.process.kill()
    yield
    for member in cluster.members:
        member.process.launch()
    for member in cluster.members:
        member.process.wait_until_serving()


@contextmanager
def zookeeper_stopped(cluster: Cluster, _member: Member, _chance: Random) -> Iterator[None]:
    """For about as long as a session."""
    cluster.zookeeper.stop()
    yield
    cluster.zookeeper.start()


@contextmanager
def zookeeper_killed(cluster: Cluster, _member: Member, chance: Random) -> Iterator[None]:
    """For longer than all sessions."""
    cluster.zookeeper.kill()
    last(chance, beyond_session=True)
    yield
    cluster.zookeeper.start()


@contextmanager
def zookeeper_frozen(cluster: Cluster, _member: Member, _chance: Random) -> Iterator[None]:
    """Connections to it stay, and nothing comes."""
    cluster.zookeeper.freeze()
    yield
    cluster.zookeeper.thaw()


Fault = Callable[[Cluster, Member, Random], AbstractContextManager[None]]

ON_A_BROKER: tuple[Fault, ...] = (
    *(killed, killed_and_back, stopped, frozen, frozen_briefly),
    *(cut_from_zookeeper, unheard, mute),
)
"""Two of these may come together, on two brokers."""

FOR_ALL: tuple[Fault, ...] = (
    *(each_alone, all_killed, zookeeper_stopped, zookeeper_killed, zookeeper_frozen),
    *(disk_full, directory_lost),
)
"""These come by themselves: a disk is lost only while its copies are whole."""
