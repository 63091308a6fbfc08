"""Groups as ListGroups shows them, those of the classic kind too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from protocol.messages.groups import ListGroupsResponse

if TYPE_CHECKING:
    import enum
    from collections.abc import Iterable, Iterator


class ListedGroup(Protocol):
    """A group as ListGroups needs it."""

    @property
    def group_id(self) -> str:
        """Its id."""

    @property
    def state(self) -> enum.Enum:
        """Its value is the name that clients see."""


def listed(
    groups: Iterable[tuple[ListedGroup, str]],
    group_type: str,
    states: Iterable[str],
    types: Iterable[str],
) -> Iterator[ListGroupsResponse.Group]:
    """Groups in one of `states` and `types`, ignoring case; an empty filter admits all.

    Each comes with its protocol type.
    """
    wanted_states = {state.lower() for state in states}
    wanted_types = {each.lower() for each in types}
    if wanted_types and group_type not in wanted_types:
        return
    for group, protocol_type in groups:
        state = group.state.value
        if not wanted_states or state.lower() in wanted_states:
            yield ListGroupsResponse.Group(
                group_id=group.group_id,
                protocol_type=protocol_type,
                group_state=state,
                group_type=group_type,
            )
