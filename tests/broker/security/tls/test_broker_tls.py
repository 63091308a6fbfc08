"""Stores and keys that change while a broker runs."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from broker.runtime.clock import SystemClock
from broker.runtime.timers import Timers
from broker.security.tls.broker_tls import BrokerTls
from broker.security.tls.listener_context import ListenerName
from config.errors import ConfigError
from tests.broker.security.tls.tls_keys import config_of
from tests.support.certificates import EXPIRED, Authority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from config.broker import BrokerConfig

LISTENER = ListenerName("EXTERNAL", has_sasl=False, is_inter_broker=False)
INTERNAL = ListenerName("INTERNAL", has_sasl=True, is_inter_broker=True)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def configured(authority: Authority, directory: Path, **more: str) -> BrokerConfig:
    """A new certificate each time, in the same file."""
    issued = authority.issue("broker", directory)
    return config_of(issued.as_keystore() | authority.as_truststore(directory, "PEM"), **more)


def run(
    config: BrokerConfig,
    scenario: Callable[[BrokerTls], Awaitable[None]],
    *listeners: ListenerName,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(1)
        tls = BrokerTls(config, threads, Timers(loop), SystemClock())
        try:
            for listener in listeners or (LISTENER,):
                await tls.open(listener)
            await scenario(tls)
        finally:
            tls.close()
            threads.shutdown()

    asyncio.run(main())


def serial(tls: BrokerTls, listener: ListenerName = LISTENER) -> int:
    found = tls.listener(listener.name)
    assert found is not None
    return found.context.certificate.serial_number


def test_an_expiring_certificate_is_logged(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = dt.datetime.fromtimestamp(SystemClock().now_ms() / 1000, dt.UTC)

    def ends_in(days: int) -> list[str]:
        valid = (EXPIRED[0], now + dt.timedelta(days=days))
        directory = tmp_path / str(days)
        directory.mkdir()
        issued = authority.issue("broker", directory, valid=valid)
        caplog.clear()

        async def nothing(_: BrokerTls) -> None:
            """The stores are read."""

        run(config_of(issued.as_keystore()), nothing)
        return caplog.messages

    assert ends_in(30) == []
    assert "EXTERNAL: its certificate ends on" in ends_in(13)[0]
    assert "EXTERNAL: its certificate has expired on" in ends_in(-1)[0]


def test_a_store_that_changes_on_disk_is_taken(authority: Authority, tmp_path: Path) -> None:
    async def scenario(tls: BrokerTls) -> None:
        before = serial(tls)
        await tls.look()
        assert serial(tls) == before

        renewed = authority.issue("broker", tmp_path)
        renewed.pkcs12()
        await tls.look()

        assert serial(tls) == renewed.certificate.serial_number != before

    run(configured(authority, tmp_path), scenario)


def test_a_damaged_store_keeps_the_old_one_and_is_logged_once(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(tls: BrokerTls) -> None:
        before = serial(tls)
        (tmp_path / "broker.store.p12").write_bytes(b"half of a st")
        for _ in range(3):
            await tls.look()
        assert serial(tls) == before
        (tmp_path / "broker.store.p12").unlink()
        for _ in range(2):
            await tls.look()
        assert serial(tls) == before

        renewed = authority.issue("broker", tmp_path)
        renewed.pkcs12()
        await tls.look()
        assert serial(tls) == renewed.certificate.serial_number

    run(configured(authority, tmp_path), scenario)

    assert [one.getMessage().partition(": ")[0] for one in caplog.records] == [
        "TLS unchanged",
        "TLS unchanged",
        "listener EXTERNAL",
    ]
    assert "the password is wrong, or the file is not PKCS12" in caplog.messages[0]
    assert "no such file" in caplog.messages[1]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_certificate_with_another_subject_is_accepted_only_if_allowed(
    authority: Authority, tmp_path: Path, allowed: bool
) -> None:
    async def scenario(tls: BrokerTls) -> None:
        before = serial(tls)
        other = authority.issue("other", tmp_path, hosts=("other.example",))
        (tmp_path / "broker.store.p12").write_bytes(other.pkcs12().read_bytes())
        await tls.look()
        assert (serial(tls) != before) is allowed

    more = {"ssl_allow_dn_changes": allowed, "ssl_allow_san_changes": allowed}
    run(configured(authority, tmp_path, **more), scenario)  # type: ignore[arg-type]


def test_other_keys_are_taken_and_wrong_ones_refused(authority: Authority, tmp_path: Path) -> None:
    config = configured(authority, tmp_path)
    (tmp_path / "new").mkdir()

    async def scenario(tls: BrokerTls) -> None:
        before = serial(tls)
        renewed = configured(authority, tmp_path / "new")
        wrong = config_of({}, ssl_keystore_location="/no/such", ssl_keystore_password="x")
        with pytest.raises(ConfigError, match=r"EXTERNAL: ssl\.keystore\.location: /no/such"):
            await tls.check(wrong)
        await tls.change(wrong)
        assert serial(tls) == before

        await tls.check(renewed)
        assert serial(tls) == before, "it was only asked"
        await tls.change(renewed)
        assert serial(tls) != before

    run(config, scenario)


def test_brokers_that_could_not_reach_each_other_are_refused(
    authority: Authority, tmp_path: Path
) -> None:
    foreign = Authority("Somebody Else")
    issued = foreign.issue("broker", tmp_path)
    config = config_of(issued.as_keystore() | authority.as_truststore(tmp_path, "PEM"))

    async def scenario(_: BrokerTls) -> None:
        """Fail: it must not be reached."""

    with pytest.raises(ConfigError, match="could not connect to each other"):
        run(config, scenario, INTERNAL)
    run(config, scenario, LISTENER)


def test_links_have_the_context_of_the_listener_for_brokers(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario(tls: BrokerTls) -> None:
        assert tls.for_links is not None
        assert tls.for_links.check_hostname

    async def without(tls: BrokerTls) -> None:
        assert tls.for_links is None

    config = configured(authority, tmp_path)
    run(config, scenario, LISTENER, INTERNAL)
    run(config, without, LISTENER)
