"""Two registries on one topic of the broker that the jobs' tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark_jobs.registry.registry_process import RegistryProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def registries(
    servers: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RegistryProcess, RegistryProcess]]:
    """Start both; what tests register in them has subjects of their own."""
    directory = tmp_path_factory.mktemp("registries")
    both = (RegistryProcess(servers, directory), RegistryProcess(servers, directory))
    for registry in both:
        registry.start()
    yield both
    assert [registry.stop() for registry in both] == [0, 0]
