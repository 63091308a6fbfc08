"""Requests made from the declarations of messages, with plausible or with outrageous contents."""

from __future__ import annotations

import importlib
import pkgutil
import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import protocol.messages
from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from protocol.api_keys import ApiKey
from protocol.fields import Field, Kind
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from protocol.schema import Request
from protocol.wire import encode_uvarint
from tests.hostile.frames.values import extremes_of, maker_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.requests.api_table import Route
    from protocol.schema import Struct
    from tests.hostile.frames.draw import Draw
    from tests.hostile.frames.values import Maker

COUNTS: Final = (0, 1, 1, 1, 1, 1, 2, 2, 3, 5)
SELDOM_COUNTS: Final = (0, 0, 0, 0, 0, 0, 1, 2)
SELDOM: Final = frozenset(
    {
        *("assignments", "forgotten_topics_data", "source_topic_regex", "copartition_groups"),
        *("task_offsets", "task_end_offsets", "active_tasks", "standby_tasks", "warmup_tasks"),
        *("topic_partitions", "repartition_sink_topics", "repartition_source_topics"),
    }
)
"""Arrays that contradict other fields when they are not empty."""

NULL_PROBABILITY: Final = 0.06
ABOUT_ACQUIRED_PROBABILITY: Final = 0.5
LONG_TEXTS: Final = (256, 8191, 32_766, 32_767, 32_767, 32_768, 40_000, 65_535, 65_536, 200_000)
ODD_TEXTS: Final = (
    *("", " ", ".", "..", "/", "../../etc", "\0", "a\0b", "\n", "%s%n{0}", "'", '"', "\\"),
    *("é" * 100, "\U0001f600", "\u202e", "null", "-1", "x" * 249, "x" * 250, "x" * 1000),
)
LETTERS: Final = ("x", "x", "é", "\0", "0,", '"', "\U0001f600")
PLACEHOLDER: Final = "<a long text>"
UINT16_MAX: Final = 0xFFFF
MANY: Final = (10, 10, 50, 100, 200, 1000)

WEIGHTS: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 8,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.METADATA: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 5,
    ApiKey.SHARE_GROUP_HEARTBEAT: 4,
    ApiKey.SHARE_FETCH: 8,
    ApiKey.SHARE_ACKNOWLEDGE: 5,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 5,
    ApiKey.PUSH_TELEMETRY: 3,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 3,
}

_BUILDERS: dict[tuple[int, int], Callable[[Draw], Any]] = {}
"""By API key and version, made when first used."""

Site = tuple[Any, Field]
"""A struct that was built, and one field of it."""


@cache
def declared() -> tuple[tuple[type[Request], int], ...]:
    """Every request that is declared, in each of its versions, in the order of API keys."""
    for module in pkgutil.iter_modules(protocol.messages.__path__):
        importlib.import_module(f"protocol.messages.{module.name}")
    classes = sorted(Request.__subclasses__(), key=lambda request: request.API_KEY)
    return tuple((request, version) for request in classes for version in request.VERSIONS)


@cache
def served() -> tuple[tuple[tuple[type[Request], int], ...], ...]:
    """By request: the versions of it that the broker serves, itself or as one of a cluster.

    Requests that do more come more often, those that a lone broker refuses less.
    """
    assert all_handlers.MODULES
    return tuple(
        tuple((route.request, version) for version in _served_versions(route))
        for key, route in sorted(ROUTES.items())
        for _ in range(1 if route.is_for_clusters else WEIGHTS.get(key, 2))
    )


def _served_versions(route: Route) -> range:
    return range(route.versions.first, route.versions.last + 1)


def build(request: type[Request], version: int, draw: Draw) -> Request:
    """A request that a client might send, if with little sense."""
    key = int(request.API_KEY), version
    builder = _BUILDERS.get(key)
    if builder is None:
        builder = _BUILDERS[key] = _builder(request, version)
    built: Request = builder(draw)
    if draw.happens(ABOUT_ACQUIRED_PROBABILITY):
        _speak_of_acquired(built, draw)
    return built


def _speak_of_acquired(built: Any, draw: Draw) -> None:
    """Have a request of a share session acknowledge what its member has, if it has anything."""
    if not isinstance(built, ShareFetchRequest | ShareAcknowledgeRequest):
        return
    kind = draw.pick((1, 1, 1, 2, 3, 4))
    known = draw.known.acquired.get((built.group_id or "", built.member_id or ""))
    if known is None:
        return
    topic_id, index, first, last = known
    topic: Any = type(built).Topic
    partition = topic.Partition
    batch = partition.AcknowledgementBatch(
        first_offset=first, last_offset=last, acknowledge_types=[kind]
    )
    built.topics = [
        topic(
            topic_id=topic_id,
            partitions=[partition(partition_index=index, acknowledgement_batches=[batch])],
        )
    ]


def _builder(cls: type[Struct], version: int) -> Callable[[Draw], Any]:
    """Return a builder of structs of class `cls`, without the fields that `version` lacks."""
    makers = [
        (field.name, _maker(cls, field, version))
        for field in cls.FIELDS
        if version in field.versions
    ]

    def make(draw: Draw) -> Any:
        return cls(**{name: maker(draw) for name, maker in makers})

    return make


def _maker(cls: type[Struct], field: Field, version: int) -> Maker:
    if field.kind is Kind.ARRAY:
        maker = _array(cls, field, version)
    elif field.kind is Kind.STRUCT:
        assert field.struct is not None
        maker = _builder(field.struct, version)
    else:
        maker = maker_of(cls.__qualname__, field.name, field.kind)
        if version not in field.nullable:
            maker = _never_null(maker, field.kind)
    if version not in field.nullable:
        return maker
    return lambda draw: None if draw.happens(NULL_PROBABILITY) else maker(draw)


def _array(cls: type[Struct], field: Field, version: int) -> Maker:
    element = field.element
    assert element is not None
    if element.struct is not None:
        inner: Maker = _builder(element.struct, version)
    else:
        inner = maker_of(cls.__qualname__, field.name, element.kind)
        inner = _never_null(inner, element.kind)
    counts = SELDOM_COUNTS if field.name in SELDOM else COUNTS
    return lambda draw: [inner(draw) for _ in range(draw.pick(counts))]


def _never_null(maker: Maker, kind: Kind) -> Maker:
    if kind is Kind.STRING:
        return lambda draw: maker(draw) or ""
    if kind is Kind.BYTES:
        return lambda draw: maker(draw) or b""
    return maker


# Twists: what no client would say, in messages that can be decoded.


def twist(request: Request, version: int, draw: Draw) -> bytes:
    """Make one thing of a request outrageous; of numbers, up to three.

    Returns a text to be put where the request has PLACEHOLDER, with `spliced`, once it is encoded:
    encoders refuse what is too long to be read.
    """
    sites = list(_sites(request, version))
    kind = draw.pick(_TWISTS)
    fitting = [site for site in sites if kind.fits(site[1], version)] or [
        site for site in sites if _EXTREME.fits(site[1], version)
    ]
    if not fitting:
        return b""
    kind = kind if kind.fits(fitting[0][1], version) else _EXTREME
    for _ in range(1 + draw.below(3) if kind is _EXTREME else 1):
        owner, field = draw.pick(fitting)
        setattr(owner, field.name, kind.value(owner, field, draw))
    return _long_text(draw) if kind is _LONG_TEXT else b""


def spliced(body: bytes, text: bytes, *, is_flexible: bool) -> bytes:
    """An encoded request with `text` in all places where it has PLACEHOLDER."""
    mark = PLACEHOLDER.encode()
    if is_flexible:
        return body.replace(
            encode_uvarint(len(mark) + 1) + mark, encode_uvarint(len(text) + 1) + text
        )
    length = struct.pack(">H", len(text) & UINT16_MAX)
    return body.replace(struct.pack(">H", len(mark)) + mark, length + text)


def deepen(request: Request, version: int) -> None:
    """Have every array hold its elements three times over, at each level."""
    for owner, field in list(_sites(request, version)):
        if field.kind is Kind.ARRAY:
            setattr(owner, field.name, (getattr(owner, field.name) or []) * 3)


def _sites(owner: Any, version: int) -> Iterator[Site]:
    for field in owner.FIELDS:
        if version not in field.versions:
            continue
        yield owner, field
        value = getattr(owner, field.name)
        if field.kind is Kind.STRUCT and value is not None:
            yield from _sites(value, version)
        elif field.kind is Kind.ARRAY and value and field.element.kind is Kind.STRUCT:
            for item in value:
                yield from _sites(item, version)


class _Extreme:
    """A number at the end of its range."""

    def fits(self, field: Field, version: int) -> bool:
        kind = field.element.kind if field.element is not None else field.kind
        return kind.struct_code in tuple("bhHiq")

    def value(self, _owner: Any, field: Field, draw: Draw) -> Any:
        if field.element is not None:
            extremes = extremes_of(field.element.kind)
            return [draw.pick(extremes) for _ in range(1 + draw.below(4))]
        return draw.pick(extremes_of(field.kind))


class _Text:
    """A text, or all texts of an array, of these lengths."""

    def __init__(self, texts: Callable[[Draw], str]) -> None:
        self._texts = texts

    def fits(self, field: Field, version: int) -> bool:
        kind = field.element.kind if field.element is not None else field.kind
        return kind is Kind.STRING

    def value(self, _owner: Any, field: Field, draw: Draw) -> Any:
        text = self._texts(draw)
        return [text] * (1 + draw.below(2)) if field.element is not None else text


class _Many:
    """An array with its elements many times over, which repeats names as well."""

    def fits(self, field: Field, version: int) -> bool:
        return field.kind is Kind.ARRAY

    def value(self, owner: Any, field: Field, draw: Draw) -> Any:
        times = draw.pick(MANY)
        return (getattr(owner, field.name) or []) * times


class _Null:
    """Null, where that is possible."""

    def fits(self, field: Field, version: int) -> bool:
        return version in field.nullable

    def value(self, _owner: Any, field: Field, _draw: Draw) -> Any:
        return None


def _long_text(draw: Draw) -> bytes:
    letter = draw.pick(LETTERS).encode()
    return letter * (draw.pick(LONG_TEXTS) // len(letter))


_EXTREME: Final = _Extreme()
_LONG_TEXT: Final = _Text(lambda _draw: PLACEHOLDER)
_TWISTS: Final[tuple[Any, ...]] = (
    *(_EXTREME, _EXTREME, _EXTREME, _LONG_TEXT),
    *(_Text(lambda draw: draw.pick(ODD_TEXTS)), _Many(), _Null()),
)
