"""The subject of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import NAMESPACE_OID, UUID, uuid5

from protocol.schema import Request


@dataclass(frozen=True, slots=True)
class About:
    """The names in a request, and which of its forms it has."""

    topics: tuple[str, ...]
    group: str
    transactional_id: str
    form: int = 0
    """Requests that have several forms choose by this."""
    ids: Mapping[str, UUID] = field(default_factory=dict)
    """Ids of the existing topics, by name."""

    def is_form(self, number: int, of: int = 2) -> bool:
        """Return whether the request shall have this one of its forms."""
        return self.form % of == number

    def id_of(self, topic: str) -> UUID:
        """The id of a topic; of one that does not exist, an id that no topic has."""
        return self.ids.get(topic) or uuid5(NAMESPACE_OID, topic)


Maker = Callable[[About, int], Request]
"""Makes a request of one API in a version."""
