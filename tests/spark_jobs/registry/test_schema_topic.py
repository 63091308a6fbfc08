"""Registries that write to one topic at the same time, and die while they do."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark_jobs.registry.registry_process import RegistryProcess
from tests.spark_jobs.registry.schema_texts import avro
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.process

Registries = tuple[RegistryProcess, RegistryProcess]


def numbered(number: int) -> str:
    return avro(("id", "long"), (f"field_{number}", ["null", "long"], None))


def register(registry: RegistryProcess, subject: str, number: int) -> int | None:
    """Return the id of a schema; None when the registry does not give it."""
    path = f"/subjects/{subject}/versions"
    with suppress(OSError, ValueError, EOFError):
        answer = registry.ask("POST", path, {"schema": numbered(number)})
        if answer.status == 200:
            return int(answer.body["id"])
        assert answer.status >= 500, answer
    return None


def content(registry: RegistryProcess, subject: str) -> dict[int, tuple[int, str]]:
    """Return id and schema by version."""
    path = f"/subjects/{subject}/versions"
    found: list[Any] = [
        registry.ask("GET", f"{path}/{number}").body for number in registry.ask("GET", path).body
    ]
    return {version["version"]: (version["id"], version["schema"]) for version in found}


def test_two_registries_give_each_id_and_version_once(
    registries: Registries, new_name: Callable[[str], str]
) -> None:
    subject = new_name("race")
    with ThreadPoolExecutor(8) as pool:
        ids = list(
            pool.map(lambda number: register(registries[number % 2], subject, number), range(24))
        )
    assert None not in ids
    assert len(set(ids)) == 24
    one, other = (content(registry, subject) for registry in registries)
    assert one == other
    assert list(one) == list(range(1, 25))
    expected = {(schema_id, numbered(n).replace(" ", "")) for n, schema_id in enumerate(ids)}
    assert set(one.values()) == expected


def test_two_registries_agree_on_a_schema_that_both_are_given(
    registries: Registries, new_name: Callable[[str], str]
) -> None:
    subject = new_name("same")
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: register(registries[n % 2], subject, 1), range(8)))
    assert len(set(ids)) == 1
    assert list(content(registries[0], subject)) == [1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_answered_outlives_kills_of_registries_and_broker(tmp_path: Path) -> None:
    broker = ours(tmp_path / "broker", {"transaction.timeout.ms": "10000"})
    broker.start()
    both = [RegistryProcess(broker.bootstrap, tmp_path) for _ in range(2)]
    for registry in both:
        registry.start()
    known: dict[int, int] = {}

    def register_all(numbers: range) -> None:
        with ThreadPoolExecutor(4) as pool:
            given = pool.map(lambda n: (n, register(both[n % 2], "s", n)), numbers)
            known.update((number, found) for number, found in given if found is not None)

    def restart_registry(one: RegistryProcess) -> None:
        one.stop(signal.SIGKILL)
        one.start()

    def restart_broker() -> None:
        broker.kill()
        broker.start()

    faults: tuple[Callable[[], None], ...] = (
        partial(restart_registry, both[0]),
        restart_broker,
        partial(restart_registry, both[1]),
    )
    try:
        for turn, fault in enumerate(faults):
            with ThreadPoolExecutor(1) as background:
                work = background.submit(register_all, range(30 * turn, 30 * turn + 30))
                fault()
                work.result()
        register_all(range(90, 96))
        fresh = RegistryProcess(broker.bootstrap, tmp_path)
        fresh.start()
        found = content(fresh, "s")
        fresh.stop()
    finally:
        for registry in both:
            registry.stop(signal.SIGKILL)
        broker.stop()
    assert set(range(90, 96)) <= known.keys()
    assert list(found) == list(range(1, len(found) + 1))
    by_id = dict(found.values())
    assert len(by_id) == len(found)
    assert {n: by_id.get(i) for n, i in known.items()} == {
        n: numbered(n).replace(" ", "") for n in known
    }
