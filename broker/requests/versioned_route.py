"""One request in one version: its decoder, its handler, and the encoding of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.requests.encoded_response import TooLargeError
from protocol.headers import response_front_packer, response_header_bytes
from protocol.schema import UNENCODABLE

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.requests.api_table import Route
    from protocol.compiler import StepDecoder
    from protocol.schema import Part, Response


class VersionedRoute:
    """Looked up once for all requests of the same key and version."""

    __slots__ = (
        *("_header_bytes", "_pack_front", "_step_decoder"),
        *("decode", "handler", "route", "version"),
    )

    def __init__(self, route: Route, version: int) -> None:
        self.route = route
        self.version = version
        self.handler = route.handler
        self.decode = route.request.decoder(version)
        key = route.request.API_KEY
        self._step_decoder: StepDecoder | None = None
        self._header_bytes = response_header_bytes(key, version)
        self._pack_front = response_front_packer(key, version)

    def decode_in_steps(
        self, frame: memoryview, position: int, end: int
    ) -> Generator[int, None, tuple[Any, int]]:
        """As `decode`, for long requests. Raises UNDECODABLE while it goes on."""
        if self._step_decoder is None:
            self._step_decoder = self.route.request.step_decoder(self.version)
        return self._step_decoder(frame, position, end)

    def note(self, response: Response) -> None:
        """Note an answer whose bytes are made elsewhere; `respond` notes its own."""

    def respond(self, correlation_id: int, response: Response) -> list[Part]:
        """Size, response header and body, ready to be sent. Raises TooLargeError."""
        try:
            parts = response.encode_parts(self.version)
        except UNENCODABLE as error:
            raise TooLargeError(error) from None
        if len(parts) == 1:
            body = parts[0]
            assert isinstance(body, bytes)
            return [self._pack_front(self._header_bytes + len(body), correlation_id) + body]
        size = self._header_bytes + sum(map(len, parts))
        parts.insert(0, self._pack_front(size, correlation_id))
        return parts
