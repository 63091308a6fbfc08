"""HTTP around the resources: routes, content types, bodies and errors, as Confluent has them.

A resource runs on a thread of Starlette's bounded pool, where it may wait for the topic.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request  # noqa: TC002 - Starlette reads the annotation
from starlette.responses import Response
from starlette.routing import Route

from spark_jobs.registry.registry_errors import BAD_REQUEST, RegistryError
from spark_jobs.registry.resources import RESOURCES, Asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from spark_jobs.registry.resources import Resource
    from spark_jobs.registry.schema_topic import SchemaTopic

MEDIA_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
"""What is answered: the first, unless a client asks for another."""

TAKEN = frozenset({*MEDIA_TYPES, "application/octet-stream", ""})
LARGEST_BODY = 1_000_000
"""Bytes of a request: the topic takes no larger record."""


def application(topic: SchemaTopic) -> Starlette:
    """Return the interface to the registry on a topic."""
    routes = [
        Route(path, _endpoint(topic, resource), methods=[method])
        for method, path, resource in RESOURCES
    ]
    handlers: dict[Any, Any] = {
        RegistryError: _refused,
        HTTPException: _http_error,
        Exception: _failed,
    }
    return Starlette(routes=routes, exception_handlers=handlers)


def _endpoint(topic: SchemaTopic, resource: Resource) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        media_type = _accepted(request.headers.get("accept", ""))
        body = _document(request, await _body(request))
        asked = Asked(request.path_params, dict(request.query_params), body)
        answer = await run_in_threadpool(resource, topic, asked)
        content = answer if isinstance(answer, bytes) else _json(answer)
        return Response(content, media_type=media_type)

    return handle


def _accepted(accept: str) -> str:
    """Return the content type of the answer; refuse when the client takes none there is."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()]
    for kind in wanted:
        if kind in MEDIA_TYPES:
            return kind
    if wanted and not {"*/*", "application/*"} & set(wanted):
        raise HTTPException(406)
    return MEDIA_TYPES[0]


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise HTTPException(413)
    return bytes(body)


def _document(request: Request, body: bytes) -> Mapping[str, Any]:
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TAKEN:
        raise HTTPException(415)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RegistryError(BAD_REQUEST, f"The body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise RegistryError(BAD_REQUEST, "The body is not a JSON object")
    return document


def _json(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


def _error(status: int, code: int, message: str) -> Response:
    content = _json({"error_code": code, "message": message})
    return Response(content, status, media_type=MEDIA_TYPES[0])


async def _refused(_: Request, error: RegistryError) -> Response:
    return _error(error.status, error.code, error.message)


async def _http_error(_: Request, error: HTTPException) -> Response:
    words = f"HTTP {error.status_code} {error.detail}"
    return _error(error.status_code, error.status_code, words)


async def _failed(request: Request, error: Exception) -> Response:
    logging.getLogger(__name__).error("request failed: %s", request.url.path, exc_info=error)
    return _error(500, 500, "Internal Server Error")
