"""The answer to a request with an error in it, for any request, made by its declaration.

An answer says of each element of the request (a topic, its partitions; a group) what became of it,
in arrays in the same order, under the same names:

    Produce                                     its answer
    topic_data                                  responses
        name                                        name
        partition_data                              partition_responses
            index                                       index, error_code

So the arrays of both are paired, in their order, and the error stands where an answer of this
version has a field for one: as far up as there is one, or with `is_deep` as far down. A few answers
of Apache Kafka have it at all levels (`_AT_ALL_LEVELS`), and so have these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.api_keys import ApiKey
from protocol.fields import Kind
from protocol.schema import Request

if TYPE_CHECKING:
    from protocol.errors import ApiError
    from protocol.fields import Field
    from protocol.schema import Response, Struct

ERRORS = ("error_code", "partition_error_code")
MESSAGE = "error_message"
INDEXES = ("index", "partition_index", "partition")
NAMES = ("name", "topic", "topic_name")
NOTHING = {Kind.INT64: -1, Kind.RECORDS: b""}
"""Values of offsets, producer ids and records in an error answer."""
UNKNOWN = dict.fromkeys(
    ("node_id", "num_partitions", "port", "producer_epoch", "replication_factor"), -1
)
"""Other numbers that are not 0 where there is an error."""
_NAMING = (Kind.STRING, Kind.UUID, Kind.INT8)
"""Kinds of fields that identify an element, besides INDEXES."""
_AT_ALL_LEVELS = {
    ApiKey.FETCH: 12,
    ApiKey.METADATA: 13,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 1,
}
"""Up to which version an answer repeats the error in its elements."""
_SCALARS = {str: Kind.STRING, int: Kind.INT32}


class NoPlaceError(Exception):
    """This version of the answer has no field for an error."""


def error_answer(
    request: Request, version: int, error: ApiError, *, is_deep: bool = False
) -> Response:
    """An answer that has `error` for all that the request names. Raises NoPlaceError."""
    repeats = version <= _AT_ALL_LEVELS.get(request.API_KEY, -1)
    mirror = _Mirror(version, error, is_deep=is_deep, repeats=repeats)
    if not mirror.has_place(request.RESPONSE):
        raise NoPlaceError(f"{request.RESPONSE.__name__} v{version} has no field for an error")
    answer = mirror.of(request, request.RESPONSE)
    assert isinstance(answer, request.RESPONSE)
    return answer


class _Mirror:
    def __init__(self, version: int, error: ApiError, *, is_deep: bool, repeats: bool) -> None:
        self._version = version
        self._error = error
        self._is_deep = is_deep
        self._repeats = repeats

    def of(self, asked: Any, answer: type[Struct]) -> Struct:  # noqa: ANN401 - struct or scalar
        """Answer for one element of the request."""
        present = {field.name for field in self._present(answer)}
        values: dict[str, Any] = {name: UNKNOWN[name] for name in present & UNKNOWN.keys()}
        values |= self._copied(asked, answer)
        arrays = list(zip(self._places(answer), self._arrays(asked), strict=False))
        own = next((field for field in self._present(answer) if field.name in ERRORS), None)
        is_here = own is not None and not (self._is_deep and arrays)
        if own is not None and is_here:
            values[own.name] = int(self._error.code)
            if MESSAGE in present:
                values[MESSAGE] = self._error.message
        if not is_here or self._repeats:
            for ours, theirs in arrays:
                assert ours.element is not None
                struct = ours.element.struct
                assert struct is not None
                elements = getattr(asked, theirs.name) or ()
                values[ours.name] = [self.of(element, struct) for element in elements]
        return answer(**values)

    def has_place(self, answer: type[Struct]) -> bool:
        """Return whether it has a field for an error, at any depth."""
        if any(field.name in ERRORS for field in self._present(answer)):
            return True
        return bool(self._places(answer))

    def _places(self, answer: type[Struct]) -> list[Field]:
        """The arrays of an answer with a place for an error in their elements."""
        return [
            field
            for field in self._present(answer)
            if field.element is not None
            and field.element.struct is not None
            and self.has_place(field.element.struct)
        ]

    def _arrays(self, asked: Any) -> list[Field]:  # noqa: ANN401 - as above
        if not hasattr(asked, "FIELDS"):
            return []
        return [field for field in self._present(type(asked)) if field.kind is Kind.ARRAY]

    def _present(self, struct: type[Struct]) -> list[Field]:
        return [field for field in struct.FIELDS if self._version in field.versions]

    def _copied(self, asked: Any, answer: type[Struct]) -> dict[str, Any]:  # noqa: ANN401
        """Names, ids and indexes of the request's element, under their names in answers."""
        if not hasattr(asked, "FIELDS"):
            return _named_by(asked, answer)
        values: dict[str, Any] = {}
        theirs = {
            field.name
            for field in self._present(type(asked))
            if field.kind in _NAMING or field.name in INDEXES
        }
        for field in self._present(answer):
            if field.kind in (Kind.ARRAY, Kind.STRUCT):
                continue
            if field.kind in NOTHING:
                values[field.name] = NOTHING[field.kind]
            same = [field.name, *_aliases(field.name)]
            found = next((name for name in same if name in theirs), None)
            if found is not None and not isinstance(asked, Request):
                values[field.name] = getattr(asked, found)
        return values


def _aliases(name: str) -> tuple[str, ...]:
    for group in (INDEXES, NAMES):
        if name in group:
            return group
    return ()


def _named_by(asked: object, answer: type[Struct]) -> dict[str, Any]:
    """A bare name or number of the request, under the first field of its kind."""
    kind = _SCALARS.get(type(asked))
    named = (field for field in answer.FIELDS if field.kind is kind and field.name != MESSAGE)
    field = next(named, None)
    return {} if field is None else {field.name: asked}
