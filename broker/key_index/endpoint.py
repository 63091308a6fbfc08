"""Record look-ups over HTTP: `/records?topic=…&key=…`, answered with JSON.

    {"topic": "orders", "records": [
      {"partition": 0, "offset": 17, "timestamp": 1795229963000, "key": "4711", "value": "…",
       "headers": [["message-id", "a"]]}],
     "next": null, "led_elsewhere": [[1, 2]],
     "segments": 12, "segments_without_index": 1, "bytes_read": 73216}

Keys, values and headers are text if they are UTF-8, else an object with `base64`. `next` is the
position to continue from (`start`) if there is more, `led_elsewhere` are partitions and the brokers
to query for them. Waiting records are at `/waiting` (`waiting_lookups`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.http.endpoint import HttpEndpoint, say
from broker.key_index.lookups import ATTEMPTS, GRACE_SECONDS
from broker.key_index.request import BadRequestError, read_request
from broker.key_index.topic_access import RefusedError
from config.listeners.addresses import java_address
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from broker.http.protection import Protection
    from broker.key_index.lookups import LookupAnswer, Lookups
    from broker.key_index.waiting_lookups import WaitingLookups
    from config.broker import BrokerConfig

    Encode = Callable[[], bytes]
    """Encodes an answer, on the thread that sends it."""
    Work = Callable[[str, str], Coroutine[Any, Any, Encode]]
    """Takes a query and the client's address."""

logger = logging.getLogger(__name__)

NAME: Final = "key index"
PATH: Final = "/records"
WAITING_PATH: Final = "/waiting"
CANCEL_PATH: Final = "/waiting/cancel"
UNAVAILABLE: Final = "503 Service Unavailable"
_STATUS: Final = {
    ErrorCode.INVALID_RECORD: "409 Conflict",
    ErrorCode.POLICY_VIOLATION: "409 Conflict",
}
"""Of errors that another attempt does not help against."""


class LookupEndpoint:
    """Takes an address, and answers look-ups there once `serve` is called."""

    def __init__(self, config: BrokerConfig, protection: Protection) -> None:
        """Take the address; raises ListenError."""
        self._endpoint = HttpEndpoint(
            NAME, config.key_index_host, config.key_index_port, protection
        )
        self._threads = config.key_index_lookup_max_waiting
        one = config.key_index_lookup_timeout_ms / 1000 + GRACE_SECONDS
        self._timeout_seconds = ATTEMPTS * one * self._threads
        self._ways: Mapping[str, tuple[str, Work]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve(self, lookups: Lookups, waiting: WaitingLookups) -> None:
        """Begin to answer. Call it on the event loop, on which the look-ups are."""

        async def records(query: str, address: str) -> Encode:
            request = read_request(query)
            return partial(_encoded, request.topic, await lookups.find(request, address))

        self._ways = {
            PATH: ("GET", records),
            WAITING_PATH: ("GET", waiting.listed),
            CANCEL_PATH: ("POST", waiting.cancelled),
        }
        self._loop = asyncio.get_running_loop()
        self._endpoint.serve(self._answer, self._threads)
        logger.info("key index: records are looked up at %s%s", self._endpoint.url, PATH)

    def close(self) -> None:
        """Stop answering."""
        self._endpoint.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        way = self._ways.get(environ["PATH_INFO"])
        if way is None:
            text = "There is nothing here. There is:\n" + "\n".join(self._ways)
            return say("404 Not Found", f"{text}\n", start_response)
        method, work = way
        if environ["REQUEST_METHOD"].replace("HEAD", "GET") != method:
            return say("405 Method Not Allowed", f"{method} only\n", start_response)
        query = environ.get("QUERY_STRING", "")
        address = java_address(environ.get("REMOTE_ADDR", ""))
        try:
            answer = self._done(work(query, address))()
        except (BadRequestError, RefusedError, ApiError) as error:
            status, text = _refusal(error)
            return say(status, f"{text}\n", start_response)
        except Exception:
            logger.exception("key index look-up failed")
            return say("500 Internal Server Error", "see the broker's log\n", start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [answer]

    def _done(self, work: Coroutine[Any, Any, Encode]) -> Encode:
        """Have the event loop do it. Raises RefusedError if that takes too long."""
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._timeout_seconds)
        except TimeoutError:
            future.cancel()
            raise RefusedError("504 Gateway Timeout", "the look-up took too long") from None


def _refusal(error: BadRequestError | RefusedError | ApiError) -> tuple[str, str]:
    """Status and text."""
    if isinstance(error, RefusedError):
        return error.status, error.text
    if isinstance(error, ApiError):
        return _STATUS.get(error.code, UNAVAILABLE), str(error)
    return "400 Bad Request", str(error)


def _encoded(topic: str, answer: LookupAnswer) -> bytes:
    done = answer.done
    is_whole = done.next_partition < 0
    rest = {
        "next": None if is_whole else f"{done.next_partition}:{done.next_offset}",
        "led_elsewhere": answer.elsewhere,
        "segments": done.segments,
        "segments_without_index": done.segments_without_index,
        "bytes_read": done.bytes_read,
    }
    head = f'{{"topic":{json.dumps(topic)},"records":'.encode()
    return b"".join((head, answer.records, b",", json.dumps(rest).encode()[1:], b"\n"))
