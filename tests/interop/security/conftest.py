"""Brokers with a listener for each security protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import against_apache
from tests.support.security.realm import Realm
from tests.support.security.secured_brokers import APACHE_4, OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.security.secured_brokers import SecuredBroker


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Realm:
    """Return users and certificates."""
    return Realm(tmp_path_factory.mktemp("realm"))


@pytest.fixture(scope="session")
def secured(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Return a running broker; `AGAINST=apache` makes it Apache's."""
    make = APACHE_4 if against_apache() else OURS
    broker = secured_broker(make, tmp_path_factory.mktemp("secured"), realm)
    try:
        broker.start()
        yield broker
        assert broker.process.is_running(), f"the broker died:\n{broker.process.output_tail()}"
        broker.process.stop()
    finally:
        broker.process.kill()
