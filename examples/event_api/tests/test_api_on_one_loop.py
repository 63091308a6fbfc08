"""API, client and broker on one event loop, asyncio's own and uvloop's, by AnyIO's plugin."""

from __future__ import annotations

import pytest
import uvloop
from api import application
from httpx2 import ASGITransport, AsyncClient

from broker.testing import EmbeddedBroker, Produce
from config import Settings

pytestmark = pytest.mark.anyio
LOOPS = [
    pytest.param(("asyncio", {}), id="asyncio"),
    pytest.param(("asyncio", {"loop_factory": uvloop.new_event_loop}), id="uvloop"),
]


@pytest.fixture(params=LOOPS)
def anyio_backend(request):
    return request.param


@pytest.fixture
async def broker():
    async with EmbeddedBroker() as broker:
        await broker.create_topic("events")
        yield broker


@pytest.fixture
async def client(broker):
    app = application(Settings(broker.bootstrap_servers))
    transport = ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://api") as client,
    ):
        yield client


async def test_what_is_answered_is_stored(broker, client):
    for number in range(3):
        answer = await client.post("/events", json={"id": f"{number}", "text": "a visit"})
        assert (answer.status_code, answer.json()) == (202, {"offset": number})
    assert [record.key for record in await broker.records("events")] == [b"0", b"1", b"2"]


async def test_a_lost_answer_stores_nothing_twice(broker, client):
    async with await broker.drop_answer(Produce, times=1) as lost:
        answer = await client.post("/events", json={"id": "1", "text": "a visit"})
        assert answer.status_code == 202
        assert await lost.count() == 1
    assert len(await broker.records("events")) == 1
