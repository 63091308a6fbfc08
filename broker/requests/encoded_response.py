"""Responses that are encoded before they are given to dispatch: once for many, or in slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from broker.requests.long_requests import Remains
from protocol.errors import ApiError, ErrorCode
from protocol.schema import UNENCODABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.requests.context import Context
    from protocol.schema import Part, Response

R = TypeVar("R", bound="Response")


class TooLargeError(ApiError):
    """A value of a response is too large for its field.

    An error message that quotes a long name, for example.
    """

    def __init__(self, refusal: Exception) -> None:
        """`refusal` is the encoder's exception, one of UNENCODABLE."""
        reason = f"a value is too large for its field in the response: {refusal}"
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, reason)


class EncodedResponse:
    """Stands for a response that is encoded already."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def beginning_with(self, front: bytes) -> EncodedResponse:
        """A copy with other bytes at its beginning."""
        first = self._parts[0]
        assert isinstance(first, bytes)
        return EncodedResponse([front + first[len(front) :], *self._parts[1:]])

    def encode_parts(self, _: int) -> list[Part]:
        """The bytes, in a list that the caller may change."""
        return list(self._parts)

    def encode_in_steps(self, _: int, parts: list[Part]) -> Iterator[None]:
        """The bytes, at once."""
        parts += self._parts
        return iter(())


async def encoded_in_slices(context: Context, response: R) -> R:
    """The same response, encoded in slices: others are served between its elements.

    Its elements are freed in slices as well, once it is answered. Raises TooLargeError.
    """
    if context.remains is None:
        context.remains = Remains(context.broker.leftovers.add, context.held)
    context.remains.keep(response)
    parts: list[Part] = []
    steps = response.encode_in_steps(context.api_version, parts)
    try:
        async for _ in context.broker.slices().each(steps):
            pass
    except UNENCODABLE as error:
        raise TooLargeError(error) from None
    if all(isinstance(part, bytes) for part in parts):
        parts = [b"".join(cast("list[bytes]", parts))]
    return cast("R", EncodedResponse(parts))
