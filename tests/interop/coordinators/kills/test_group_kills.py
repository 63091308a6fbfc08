"""A broker that is killed again and again while groups read what is sent all the time.

In each life members come and go, in a group that moves also to the other protocol. Nothing is lost,
and nothing comes again whose commit was accepted before the partition was assigned.
"""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, wait_for_coordinators
from tests.interop.workloads.loaded_group import PARTITIONS, SETTINGS, LoadedGroup
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache(), reason="it is our broker that is killed"),
]

LIVES = 4
MOST_MEMBERS = 3
PROTOCOLS = {
    "classic": ("classic",),
    "consumer": ("consumer",),
    "moving": ("classic", "consumer"),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_no_record_is_lost_or_delivered_again_after_its_commit(
    kind: str, seed: int, tmp_path: Path
) -> None:
    chance, protocols = random.Random(seed), PROTOCOLS[kind]
    broker = ours(tmp_path, SETTINGS)
    broker.start()
    wait_for_coordinators(broker.bootstrap)
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "load", PARTITIONS)
    try:
        with closing(LoadedGroup(broker.bootstrap, "load")) as group:
            for protocol in (protocols[0], protocols[-1]):
                group.join(protocol)
            group.settle()
            for life in range(LIVES):
                group.read_more(chance.randrange(1, 600))
                change(group, chance, protocols[life % len(protocols)])
                group.read_more(chance.randrange(1, 600))
                broker.kill()
                broker.start()
            group.check()
            group.settle()
    finally:
        broker.kill()


def change(group: LoadedGroup, chance: random.Random, protocol: str) -> None:
    """Make a member leave or join, or both at once; one always stays."""
    if len(group.members) == MOST_MEMBERS or (len(group.members) > 1 and chance.random() < 0.5):
        group.leave(chance.choice(group.members))
    if len(group.members) == 1 or chance.random() < 0.5:
        group.join(protocol)
