"""Where records are looked up: `/records?topic=…&key=…`, answered with JSON.

    {"topic": "orders", "records": [
      {"partition": 0, "offset": 17, "timestamp": 1795229963000, "key": "4711", "value": "…",
       "headers": [["message-id", "a"]]}],
     "next": null, "led_elsewhere": [[1, 2]],
     "segments": 12, "segments_without_index": 1, "bytes_read": 73216}

Keys, values and headers are text where they are UTF-8, and an object with `base64` elsewhere.
`next` is where to go on (`start`) when there is more, `led_elsewhere` are partitions and the
brokers to be asked for them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

from broker.http.endpoint import HttpEndpoint, say
from broker.key_index.lookups import ATTEMPTS, GRACE_SECONDS, RefusedError
from broker.key_index.request import BadRequestError, read_request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from broker.http.protection import Protection
    from broker.key_index.lookups import LookupAnswer, Lookups
    from config.broker import BrokerConfig

logger = logging.getLogger(__name__)

NAME: Final = "key index"
PATH: Final = "/records"


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
        self._lookups: Lookups | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve(self, lookups: Lookups) -> None:
        """Begin to answer. Call it on the event loop, on which the look-ups are."""
        self._lookups = lookups
        self._loop = asyncio.get_running_loop()
        self._endpoint.serve(self._answer, self._threads)
        logger.info("key index: records are looked up at %s%s", self._endpoint.url, PATH)

    def close(self) -> None:
        """Answer no more."""
        self._endpoint.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            text = f"There is nothing here. There is:\n{PATH}\n"
            return say("404 Not Found", text, start_response)
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return say("405 Method Not Allowed", "GET only\n", start_response)
        try:
            return self._found(environ, start_response)
        except BadRequestError as error:
            return say("400 Bad Request", f"{error}\n", start_response)
        except RefusedError as error:
            return say(error.status, f"{error.text}\n", start_response)
        except Exception:
            logger.exception("key index look-up failed")
            return say("500 Internal Server Error", "see the broker's log\n", start_response)

    def _found(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        assert self._lookups is not None
        assert self._loop is not None
        request = read_request(environ.get("QUERY_STRING", ""))
        work = self._lookups.find(request, environ.get("REMOTE_ADDR", ""))
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            answer = future.result(self._timeout_seconds)
        except TimeoutError:
            future.cancel()
            raise RefusedError("504 Gateway Timeout", "the look-up took too long") from None
        start_response("200 OK", [("Content-Type", "application/json")])
        return _pieces(request.topic, answer)


def _pieces(topic: str, answer: LookupAnswer) -> list[bytes]:
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
    return [head, answer.records, b",", json.dumps(rest).encode()[1:], b"\n"]
