"""Topics that a request names, for requests of any kind.

Found by the declarations: elements of an array with "topic" in its name, by the field that names or
identifies one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.fields import Kind
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from protocol.schema import Struct

NAMES = ("name", "topic", "topic_name")
ID = "topic_id"


def topics_of(message: Struct, names_by_id: Mapping[UUID, str]) -> set[str]:
    """The names of the topics in a request; of those named by an id, if it is known."""
    return set(_found(message, names_by_id))


def topic_of(element: Any, names_by_id: Mapping[UUID, str]) -> str | None:  # noqa: ANN401
    """The topic that an element of an array is about; None if it is about none."""
    if isinstance(element, str):
        return element
    for name in NAMES:
        value = getattr(element, name, None)
        if isinstance(value, str) and value:
            return value
    identity = getattr(element, ID, ZERO_UUID)
    return names_by_id.get(identity) if identity != ZERO_UUID else None


def names_topics(struct: type[Struct]) -> bool:
    """Return whether such a request can name topics, in any version."""
    for field in struct.FIELDS:
        if field.element is None:
            continue
        element = field.element.struct
        places = {NAMES[0]} if element is None else {one.name for one in element.FIELDS}
        if is_of_topics(field.name) and places & {*NAMES, ID}:
            return True
        if element is not None and names_topics(element):
            return True
    return False


def is_of_topics(name: str) -> bool:
    """Return whether an array of this name is one of topics."""
    return "topic" in name


def _found(message: Struct, names_by_id: Mapping[UUID, str]) -> Iterator[str]:
    for field in message.FIELDS:
        if field.kind is not Kind.ARRAY:
            continue
        for element in getattr(message, field.name) or ():
            topic = topic_of(element, names_by_id) if is_of_topics(field.name) else None
            if topic is not None:
                yield topic
            elif hasattr(element, "FIELDS"):
                yield from _found(element, names_by_id)
