"""ACLs in the store: every writer's change is kept, and every broker is notified of it."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from controller.metadata_store.store import Create, Delete, SetData, StoreUnavailableError
from controller.security.acl_znodes import acl_path, encode_acl, encode_acl_change
from controller.security.acls import WRITE_ATTEMPTS, StoredAcls
from controller.znodes import MalformedZnodeError
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.controller.breaking_store import BreakingStore
from tests.controller.memory_store import MemoryEnsemble
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.metadata_store.store import Operation
    from controller.security.acls import Entries

LITERAL = ResourcePattern(ResourceType.TOPIC, "orders")
PREFIXED = ResourcePattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
PATH = acl_path(LITERAL)
CHANGES = "/kafka-acl-changes"


def entry(name: str) -> AccessControlEntry:
    return AccessControlEntry(f"User:{name}", "*", AclOperation.READ, PermissionType.ALLOW)


def adding(*names: str) -> Callable[[Entries], Entries]:
    return lambda present: (*present, *map(entry, names))


def nothing(_: Entries) -> Entries:
    return ()


class OneBroker:
    """The ACLs of one broker; it reads notifications on demand."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        self.store = BreakingStore(ensemble)
        self.heard: dict[ResourcePattern, Entries] = {}
        self.notices = 0
        self.acls = StoredAcls(self.store, one_step_at_a_time, self._changed, self._noticed)

    def names(self, pattern: ResourcePattern) -> list[str]:
        return [one.principal.removeprefix("User:") for one in self.heard.get(pattern, ())]

    async def hear(self) -> None:
        await asyncio.sleep(0)  # noqa: TID251  watches are called on the loop
        if self.notices:
            self.notices = 0
            await self.acls.refresh()

    def _changed(self, pattern: ResourcePattern, entries: Entries) -> None:
        assert self.heard.get(pattern, ()) != entries, "only changes are told"
        self.heard[pattern] = entries

    def _noticed(self) -> None:
        self.notices += 1


async def two_brokers() -> tuple[MemoryEnsemble, OneBroker, OneBroker]:
    ensemble = MemoryEnsemble()
    one, other = OneBroker(ensemble), OneBroker(ensemble)
    await one.acls.start()
    await other.acls.start()
    return ensemble, one, other


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_a_change_is_known_at_once_here_and_to_others_by_its_notification(
    pattern: ResourcePattern,
) -> None:
    async def scenario() -> None:
        _, one, other = await two_brokers()
        assert await one.acls.alter({pattern: adding("a", "b", "a")}) == {}
        assert one.names(pattern) == ["a", "b"]
        assert other.names(pattern) == []
        await other.hear()
        assert other.names(pattern) == ["a", "b"]
        await other.acls.alter({pattern: lambda present: present[1:]})
        await one.hear()
        assert one.names(pattern) == ["b"]
        await one.acls.alter({pattern: nothing})
        assert await one.store.exists(acl_path(pattern)) is None
        await other.hear()
        assert other.names(pattern) == []

    asyncio.run(scenario())


def test_lists_are_read_at_the_start() -> None:
    async def scenario() -> None:
        ensemble, one, _ = await two_brokers()
        await one.acls.alter({LITERAL: adding("a"), PREFIXED: adding("b")})
        third = OneBroker(ensemble)
        await third.acls.start()
        assert (third.names(LITERAL), third.names(PREFIXED)) == (["a"], ["b"])

    asyncio.run(scenario())


def test_an_acl_alteration_without_change_is_not_written() -> None:
    async def scenario() -> None:
        _, one, _ = await two_brokers()
        await one.acls.alter({LITERAL: adding("a")})
        await one.acls.alter({LITERAL: adding("a"), PREFIXED: nothing})
        assert len(await one.store.children(CHANGES)) == 1
        assert (await one.store.get(PATH)).version == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("present", "write", "outcome"),
    [
        (["old"], SetData(PATH, encode_acl([entry("x")])), ["x", "ours"]),
        ([], Create(PATH, encode_acl([entry("x")])), ["x", "ours"]),
        (["old"], Delete(PATH), ["ours"]),
    ],
)
def test_an_acl_change_keeps_concurrent_changes(
    present: list[str], write: Operation, outcome: list[str]
) -> None:
    async def scenario() -> None:
        ensemble, one, _ = await two_brokers()
        await one.acls.alter({LITERAL: adding(*present)})
        writes = [write]

        def change(before: Entries) -> Entries:
            if writes:
                ensemble.tree.apply([writes.pop()], 99)
            return (*before, entry("ours"))

        assert await one.acls.alter({LITERAL: change}) == {}
        assert one.names(LITERAL) == outcome

    asyncio.run(scenario())


def test_a_list_that_others_always_change_first_is_given_up_and_the_rest_written() -> None:
    async def scenario() -> None:
        ensemble, one, _ = await two_brokers()
        await one.acls.alter({LITERAL: adding("old")})
        tries = 0

        def change(before: Entries) -> Entries:
            nonlocal tries
            tries += 1
            ensemble.tree.apply([SetData(PATH, encode_acl([entry(str(tries))]))], 99)
            return (*before, entry("ours"))

        errors = await one.acls.alter({LITERAL: change, PREFIXED: adding("a")})
        assert list(errors) == [LITERAL]
        assert "changed by others" in str(errors[LITERAL])
        assert tries == WRITE_ATTEMPTS
        assert one.names(PREFIXED) == ["a"]

    asyncio.run(scenario())


def test_an_unavailable_store_changes_nothing_here_either() -> None:
    async def scenario() -> None:
        _, one, _ = await two_brokers()
        await one.acls.alter({LITERAL: adding("a")})
        one.store.is_away = True
        one.store.breaks_at = lambda _: True
        errors = await one.acls.alter({LITERAL: adding("b")})
        assert errors
        assert one.names(LITERAL) == ["a"]

    asyncio.run(scenario())


def test_acl_changes_missed_during_an_interruption_are_read_afterwards() -> None:
    async def scenario() -> None:
        ensemble, one, other = await two_brokers()
        await one.acls.alter({LITERAL: adding("a")})
        await other.hear()
        ensemble.tree.apply([Delete(PATH)], 99)  # and no notification that is left
        await other.hear()
        assert other.names(LITERAL) == ["a"]
        other.store.breaks_at = lambda path: path.startswith("/kafka-acl/")
        other.acls.interrupted()
        with pytest.raises(StoreUnavailableError):
            await other.acls.refresh()
        other.store.breaks_at = lambda _: False
        await other.store.wait_until_reachable()
        await other.hear()
        assert other.names(LITERAL) == []

    asyncio.run(scenario())


def test_an_unreadable_acl_ends_the_start_and_is_kept_unchanged_later() -> None:
    async def scenario() -> None:
        ensemble, one, other = await two_brokers()
        await one.acls.alter({LITERAL: adding("a")})
        await other.hear()
        news = Create(f"{CHANGES}/acl_changes_", encode_acl_change(LITERAL), sequence=True)
        ensemble.tree.apply([SetData(PATH, b"?"), news], 99)
        ensemble.tree.apply([Create(f"{CHANGES}/acl_changes_", b"?", sequence=True)], 99)
        await one.hear()
        await asyncio.sleep(0)  # noqa: TID251
        await other.acls.refresh()
        assert (one.names(LITERAL), other.names(LITERAL)) == (["a"], ["a"])
        with pytest.raises(MalformedZnodeError, match=PATH):
            await OneBroker(ensemble).acls.start()

    asyncio.run(scenario())


def test_old_notifications_are_purged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        _, one, other = await two_brokers()
        for number in range(5):
            await one.acls.alter({LITERAL: adding(str(number))})
        await other.hear()
        assert len(await one.store.children(CHANGES)) == 2
        assert other.names(LITERAL) == ["0", "1", "2", "3", "4"]

    monkeypatch.setattr("controller.security.acls.KEPT_NOTIFICATIONS", 2)
    asyncio.run(scenario())


class Writers:
    """Brokers that change lists as they are drawn, and lose the store meanwhile."""

    PATTERNS = (LITERAL, PREFIXED, ResourcePattern(ResourceType.GROUP, "orders"))

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        ensemble = MemoryEnsemble()
        self.brokers = [OneBroker(ensemble) for _ in range(3)]
        self.confirmed: dict[ResourcePattern, set[str]] = {one: set() for one in self.PATTERNS}

    async def turn(self, number: int) -> None:
        """Add an entry at some brokers each; one of them may be notified of the others."""
        acting = self._chance.sample(self.brokers, self._chance.choice([1, 2, 3]))
        names = [f"{number}-{which}" for which in range(len(acting))]
        await asyncio.gather(*map(self._change, acting, names))
        if self._chance.random() < 0.5:
            await self._chance.choice(self.brokers).hear()

    async def _change(self, one: OneBroker, name: str) -> None:
        pattern = self._chance.choice(self.PATTERNS)
        if self._chance.random() < 0.3:
            one.store.breaks_at = lambda path: path.startswith("/kafka-acl")
            one.store.does_writes = self._chance.random() < 0.5
        errors = await one.acls.alter({pattern: adding(name)})
        if pattern not in errors:
            self.confirmed[pattern].add(name)
        one.store.breaks_at = lambda _: False
        await one.store.wait_until_reachable()
        if errors:
            one.acls.interrupted()  # as the store tells after an unknown outcome


@pytest.mark.parametrize("seed", range(10))
def test_brokers_that_all_change_lists_and_lose_the_store_agree_in_the_end(seed: int) -> None:
    async def scenario() -> None:
        writers = Writers(seed)
        for one in writers.brokers:
            await one.acls.start()
        for number in range(60):
            await writers.turn(number)
        for one in writers.brokers:
            await one.hear()
            for pattern, confirmed in writers.confirmed.items():
                assert confirmed <= set(one.names(pattern))
                assert one.names(pattern) == writers.brokers[0].names(pattern)

    asyncio.run(scenario())
