"""ApiVersions beside Apache Kafka 4.3.1's: key by key, version by version."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from tests.support import wire
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.listed_versions import Listed, documented_differences

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

Table = dict[ApiKey, Listed]
ERROR_CODE_AND_LENGTH = 10


def listed(broker: BrokerProcess) -> Table:
    """What a broker lists, as it is on the wire."""
    with wire.RawConnection.open(broker.port) as connection:
        answer = connection.ask(wire.api_versions_request())
    entries: Iterator[tuple[int, int, int]] = struct.iter_unpack(
        ">hhh", answer[ERROR_CODE_AND_LENGTH:]
    )
    return {ApiKey(key): (lowest, highest) for key, lowest, highest in entries}


def test_api_versions_differ_from_apaches_exactly_where_gaps_says_so(tmp_path: Path) -> None:
    tables: list[Table] = []
    for start, name in ((ours, "ours"), (apache_4, "apache")):
        broker = start(tmp_path / name)
        broker.start()
        try:
            tables.append(listed(broker))
        finally:
            broker.kill()
    here, there = tables

    differences = {
        key: (here.get(key), there.get(key))
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    }
    documented = {key: (row.ours, row.theirs) for key, row in documented_differences().items()}
    assert differences == documented
