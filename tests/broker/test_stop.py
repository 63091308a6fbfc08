"""Stopping ends the process, despite work begun meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.__main__ import main
from broker.app import Broker

if TYPE_CHECKING:
    from pathlib import Path

    from broker.requests.services import BrokerServices
    from broker.startup.addresses import Addresses
    from broker.startup.parts import Parts


@pytest.mark.timeout(120)
def test_work_begun_while_the_broker_stops_does_not_delay_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\n")
    serve = Broker._serve
    begun: list[str] = []

    async def wait_for_ever(broker: BrokerServices, name: str) -> None:
        begun.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            broker.timers.soon(lambda: broker.spawn(wait_for_ever(broker, "late"), "late"))

    async def serve_and_stop(broker: Broker, addresses: Addresses, parts: Parts) -> None:
        await serve(broker, addresses, parts)
        services = parts.services
        services.spawn(wait_for_ever(services, "early"), "early")
        await services.timers.sleep(1)
        broker.stop()

    monkeypatch.setattr(Broker, "_serve", serve_and_stop)

    assert main(["--config", str(path)]) == 0
    assert begun == ["early"]
