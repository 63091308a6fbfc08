"""Errors and requests by their names, in any case.

    error_named("not_leader_or_follower")    also NotLeaderOrFollowerException, as Java calls it
    request_named("Produce")                 also PRODUCE, or ProduceRequest

A name that nothing has is refused with the nearest one.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from protocol import messages
from protocol.errors import ErrorCode
from protocol.schema import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

REQUEST: Final = "request"
ERROR_ENDINGS: Final = ("exception", "error")
"""With which clients' classes of errors end."""
FORMER_NAMES: Final = {
    "NOT_LEADER_FOR_PARTITION": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "GROUP_COORDINATOR_NOT_AVAILABLE": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "GROUP_LOAD_IN_PROGRESS": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "NOT_COORDINATOR_FOR_GROUP": ErrorCode.NOT_COORDINATOR,
}
"""By which some clients still call them."""


def error_named(error: object) -> ErrorCode:
    """An error code, by itself, its name or its number. Raises TypeError or ValueError."""
    if isinstance(error, ErrorCode):
        return error
    if isinstance(error, str):
        return _named("error", error, _errors(), _without_ending(_plain(error)))
    if isinstance(error, bool) or not isinstance(error, int):
        raise TypeError(f"error is an ErrorCode of broker.testing or its name, not {error!r}")
    for one in ErrorCode:
        if one == error:
            return one
    raise ValueError(f"error: there is none with the number {error}")


def request_named(request: object) -> type[Request] | None:
    """A kind of request by its class or name; None is any. Raises TypeError or ValueError."""
    if request is None:
        return None
    if isinstance(request, str):
        return _named(REQUEST, request, _requests(), _plain(request).removesuffix(REQUEST))
    if isinstance(request, type) and issubclass(request, Request) and request is not Request:
        return request
    raise TypeError(
        f"request is a class of broker.testing, as Produce, or the name of one, not {request!r}"
    )


def _named(what: str, name: str, known: Mapping[str, tuple[str, T]], plain: str) -> T:
    found = known.get(plain)
    if found is not None:
        return found[1]
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.5)
    suggestion = f"; did you mean {known[close[0]][0]}?" if close else ""
    raise ValueError(f"{what}: there is no {name!r}{suggestion}")


@cache
def _errors() -> dict[str, tuple[str, ErrorCode]]:
    """By plain names."""
    named = {one.name: one for one in ErrorCode} | FORMER_NAMES
    return {_without_ending(_plain(name)): (one.name, one) for name, one in named.items()}


@cache
def _requests() -> dict[str, tuple[str, type[Request]]]:
    """By plain names. Imports the declarations of all messages."""
    for module in pkgutil.iter_modules(messages.__path__):
        importlib.import_module(f"{messages.__name__}.{module.name}")
    names = {one: one.__name__.removesuffix("Request") for one in Request.__subclasses__()}
    return {_plain(name): (name, one) for one, name in names.items()}


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _without_ending(plain: str) -> str:
    for ending in ERROR_ENDINGS:
        plain = plain.removesuffix(ending)
    return plain
