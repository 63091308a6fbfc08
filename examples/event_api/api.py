"""Takes events over HTTP and answers 202 once Kafka has them, 503 if it has not in time.

An event that was answered with 503 is given up: the client may send it again. One that Kafka has
stored and could not acknowledge is told as 503 too, so clients give events an id.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from config import Settings

POLL_SECONDS = 0.05


class Event(BaseModel):
    """What a client posts."""

    id: str
    text: str


class EventProducer:
    """A producer whose answers come to the event loop."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topic
        self._producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(settings.patience_seconds * 1000),
            }
        )

    async def poll(self) -> None:
        """Serve answers, until cancelled."""
        while True:
            await asyncio.to_thread(self._producer.poll, POLL_SECONDS)

    async def send(self, event: Event) -> int:
        """The event's offset, once it is stored. Raises KafkaException."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[int] = loop.create_future()

        def answered(error, message) -> None:
            if error is not None:
                loop.call_soon_threadsafe(stored.set_exception, KafkaException(error))
            else:
                loop.call_soon_threadsafe(stored.set_result, message.offset())

        value, key = event.model_dump_json().encode(), event.id.encode()
        self._producer.produce(self._topic, value, key=key, on_delivery=answered)
        return await stored


def application(settings: Settings) -> FastAPI:
    """The API."""
    producer = EventProducer(settings)

    @asynccontextmanager
    async def polling(_: FastAPI) -> AsyncIterator[None]:
        poll = asyncio.create_task(producer.poll())
        yield
        poll.cancel()

    app = FastAPI(lifespan=polling)

    @app.post("/events", status_code=202)
    async def post(event: Event) -> dict[str, int]:
        try:
            return {"offset": await producer.send(event)}
        except KafkaException as error:
            raise HTTPException(503, error.args[0].str()) from None

    return app
