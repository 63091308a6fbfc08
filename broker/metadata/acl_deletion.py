"""Filters that match an entry of an access control list, found without trying each.

A request of 32 KB has 4,000 filters, and a list may have thousands of entries. A filter has four
criteria for an entry, each exact or absent; so the filters that match an entry are in 16 places.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING

from protocol.acl_types import AclOperation, PermissionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.security.acls.acl_filter import AclFilter
    from protocol.acl_types import AccessControlEntry

Wanted = tuple[str | None, str | None, int, int]
"""Principal, host, operation and permission of a filter."""


class NumberedFilters:
    """Some filters of a request, by their numbers in it."""

    __slots__ = ("_numbers",)

    def __init__(
        self, filters: Sequence[AclFilter], numbers: Iterable[int], *, are_all_told: bool
    ) -> None:
        """Of equal filters, only the first is reported unless `are_all_told`."""
        self._numbers: defaultdict[Wanted, list[int]] = defaultdict(list)
        for number in numbers:
            one = filters[number]
            wanted = (one.principal, one.host, one.operation, one.permission_type)
            numbers_of_it = self._numbers[wanted]
            if are_all_told or not numbers_of_it:
                numbers_of_it.append(number)

    def matching(self, entry: AccessControlEntry) -> list[int]:
        """The numbers of those that match an entry, in their order."""
        found: list[int] = []
        for wanted in product(
            (entry.principal, None),
            (entry.host, None),
            (entry.operation, AclOperation.ANY),
            (entry.permission_type, PermissionType.ANY),
        ):
            found += self._numbers.get(wanted, ())
        found.sort()
        return found
