"""The brokers a benchmark compares: built alike, and frozen while another one is measured."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

OURS = "ours"
APACHE = "apache"

NO_KEYS: Mapping[str, str] = {}
_COMMON = {"log.segment.delete.delay.ms": "1000"}
_APACHE_ONLY = {"broker.session.timeout.ms": "3600000"}
"""A frozen KRaft broker must not lose its session with its own controller."""


def keys_of(make: str) -> dict[str, str]:
    """Return the additional keys of a make's brokers."""
    return {**_COMMON, **(_APACHE_ONLY if make == APACHE else {})}


def build(make: str, directory: Path, keys: Mapping[str, str] = NO_KEYS) -> BrokerProcess:
    """Return a broker of the make, with an empty data directory, not yet started."""
    properties = {**keys_of(make), **keys}
    if make == APACHE:
        return apache_4(directory, properties, as_its_script_does=True)
    return ours(directory, properties)


@contextmanager
def running(
    makes: tuple[str, ...], directory: Path, keys: Mapping[str, str] = NO_KEYS
) -> Iterator[dict[str, BrokerProcess]]:
    """Start one broker of each make, freeze all, and end them afterwards."""
    brokers = {make: build(make, directory / make, keys) for make in makes}
    try:
        for broker in brokers.values():
            broker.start()
            broker.freeze()
        yield brokers
    finally:
        for broker in brokers.values():
            broker.kill()


@contextmanager
def turn(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Let one broker run while the block lasts; the others stay frozen."""
    broker.thaw()
    try:
        broker.check_serving()
        yield broker
    finally:
        broker.freeze()


def start_once(make: str, directory: Path) -> float:
    """Start a broker of the make on an empty directory and return the seconds to serving."""
    broker = build(make, directory)
    try:
        broker.start()
    finally:
        broker.kill()
    return broker.startup_seconds
