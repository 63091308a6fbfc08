"""The cluster's access control lists on this broker: kept for the authorizer, changed by clients.

Creating and deleting differ a little between Apache Kafka's two authorizers; `is_standard` says
which of them answers.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from broker.metadata.acl_deletion import NumberedFilters
from broker.security.acls.acl_authorizer import AclAuthorizer, AuthorizerSettings
from broker.security.acls.host_ranges import is_range, range_of
from config.checks import STANDARD_AUTHORIZER
from controller.metadata_store.patience import BROKEN
from controller.metadata_store.store import OutcomeUnknownError, StoreError, TooLargeError
from controller.security.acl_znodes import PROTECTED, TREES, can_be_stored
from controller.security.acls import StoredAcls
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from broker.runtime.slices import Slices
    from broker.security.acls.acl_filter import AclFilter
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore
    from controller.security.acls import Entries

logger = logging.getLogger(__name__)

_TYPES = frozenset(PROTECTED.values())
_NO_COLON = "(no colon is present separating the principal type from the principal name)"
_PERMISSIONS = (PermissionType.ALLOW, PermissionType.DENY)


class AclBinding(NamedTuple):
    """One entry of one list."""

    pattern: ResourcePattern
    entry: AccessControlEntry


class Deletion(NamedTuple):
    """One entry that a filter matched, and why it could not be deleted, if it could not."""

    binding: AclBinding
    error: ApiError | None


class Acls:
    """All lists, in memory and in the store, and the authorizer that decides by them."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        slices: Callable[[], Slices],
        keep: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], object],
    ) -> None:
        """`keep(name, work)` owns the tasks that read the store after notifications."""
        self._is_standard = config.authorizer_class_name == STANDARD_AUTHORIZER
        self._most_deletions = config.authorizer_max_deletions_per_request
        self._settings = authorizer_settings(config)
        self.authorizer = AclAuthorizer(self._settings)
        self._store = store
        self._slices = slices
        self._keep = keep
        self._stored = StoredAcls(store, slices, self.authorizer.replace, self._noticed)
        store.on_interruption(self._stored.interrupted)

    async def start(self) -> None:
        """Read all lists and watch for changes. Raises MalformedZnodeError."""
        await self._stored.start()
        logger.info(
            "authorizer: %d ACLs loaded; %s; super users: %s",
            len(self.authorizer.index),
            "without ACLs, everything is allowed"
            if self._settings.allows_without_acls
            else "what no ACL allows is denied",
            ", ".join(sorted(self._settings.super_users)) or "none",
        )

    async def matching(self, wanted: AclFilter) -> dict[ResourcePattern, Entries]:
        """The entries that a filter matches, by pattern; only patterns that have some."""
        found: dict[ResourcePattern, Entries] = {}
        async for pattern, entries in self._slices().each(list(self.authorizer.index.items())):
            if wanted.matches_pattern(pattern):
                matched = tuple(filter(wanted.matches_entry, entries))
                if matched:
                    found[pattern] = matched
        return found

    async def create(self, bindings: Sequence[AclBinding]) -> list[ApiError | None]:
        """Add entries; return the error of each of them, in order."""
        slices = self._slices()
        errors = [self._refusal(binding) async for binding in slices.each(bindings)]
        news: defaultdict[ResourcePattern, list[AccessControlEntry]] = defaultdict(list)
        async for binding, error in slices.each(zip(bindings, errors, strict=True)):
            if error is None:
                news[binding.pattern].append(binding.entry)

        def adding(entries: Iterable[AccessControlEntry]) -> Callable[[Entries], Entries]:
            return lambda present: (*present, *entries)

        changes = {pattern: adding(entries) for pattern, entries in news.items()}
        failed = await self._stored.alter(changes)
        return [
            error or _api_error(failed.get(binding.pattern))
            async for binding, error in slices.each(zip(bindings, errors, strict=True))
        ]

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[Deletion] | ApiError]:
        """Delete the entries that match; return the matches of each filter, or its error.

        An entry that several filters match belongs to the first one, with AclAuthorizer; with
        StandardAuthorizer to each of them, and the matches are bounded: ApiError INVALID_REQUEST.
        """
        found: dict[ResourcePattern, dict[AccessControlEntry, list[int]]] = {}

        def without(
            pattern: ResourcePattern, wanted: NumberedFilters
        ) -> Callable[[Entries], Entries]:
            def remaining(present: Entries) -> Entries:
                matched = {
                    entry: numbers for entry in present if (numbers := wanted.matching(entry))
                }
                found[pattern] = matched  # again after a concurrent change
                return tuple(entry for entry in present if entry not in matched)

            return remaining

        slices = self._slices()
        relevant = await self._relevant(filters, slices)
        if self._is_standard:
            await self._check_count(relevant, slices)
        changes = {pattern: without(pattern, wanted) for pattern, wanted in relevant.items()}
        failed = await self._stored.alter(changes)
        deletions = await self._deletions(len(filters), found, failed)
        unread = {one: error for one, error in failed.items() if one not in found}
        return [
            (_unusable(one) if self._is_standard else None) or _unknown(one, unread) or deleted
            async for one, deleted in slices.each(zip(filters, deletions, strict=True))
        ]

    async def _relevant(
        self, filters: Sequence[AclFilter], slices: Slices
    ) -> dict[ResourcePattern, NumberedFilters]:
        """For each pattern the filters that are about it; only patterns that have some."""
        relevant: dict[ResourcePattern, NumberedFilters] = {}
        made: dict[tuple[int, ...], NumberedFilters] = {}
        numbered = await _numbered(filters, slices)
        async for pattern in slices.each(await self._patterns(filters, slices)):
            some = sorted((*numbered.get(pattern.name, ()), *numbered.get(None, ())))
            wanted = tuple(n for n in some if filters[n].matches_pattern(pattern))
            if wanted:
                known = made.get(wanted)
                if known is None:
                    are_all_told = self._is_standard
                    known = NumberedFilters(filters, wanted, are_all_told=are_all_told)
                    made[wanted] = known
                relevant[pattern] = known
        return relevant

    async def _check_count(
        self, relevant: Mapping[ResourcePattern, NumberedFilters], slices: Slices
    ) -> None:
        """Raise ApiError if there are too many matches, as by StandardAuthorizer."""
        count = 0
        for pattern, entries in list(self.authorizer.index.items()):
            wanted = relevant.get(pattern)
            async for entry in slices.each(entries if wanted is not None else ()):
                count += len(wanted.matching(entry)) if wanted is not None else 0
                if count > self._most_deletions:
                    text = f"Cannot remove more than {self._most_deletions} acls in a single "
                    raise ApiError(ErrorCode.INVALID_REQUEST, f"{text}delete operation.")

    async def _patterns(
        self, filters: Iterable[AclFilter], slices: Slices
    ) -> Iterable[ResourcePattern]:
        """The patterns known here, and those that filters name: others may have just made them."""
        found = dict.fromkeys(pattern for pattern, _ in self.authorizer.index.items())
        async for one in slices.each(filters):
            name = one.name
            if one.resource_type in _TYPES and name is not None and can_be_stored(name):
                for kind in TREES:
                    if one.pattern_type in (kind, PatternType.ANY):
                        found[ResourcePattern(one.resource_type, name, kind)] = None
        return found

    async def _deletions(
        self,
        count: int,
        found: Mapping[ResourcePattern, Mapping[AccessControlEntry, Sequence[int]]],
        failed: Mapping[ResourcePattern, StoreError],
    ) -> list[list[Deletion]]:
        results: list[list[Deletion]] = [[] for _ in range(count)]
        async for pattern, entries in self._slices().each(found.items()):
            error = _api_error(failed.get(pattern))
            for entry, numbers in entries.items():
                deletion = Deletion(AclBinding(pattern, entry), error)
                for number in numbers if self._is_standard else numbers[:1]:
                    results[number].append(deletion)
        return results

    def _refusal(self, binding: AclBinding) -> ApiError | None:
        why = _flaw(binding)
        if self._is_standard:
            why = why or _flaw_of_host(binding.entry.host)
            return None if why is None else ApiError(ErrorCode.INVALID_REQUEST, why)
        if why is None:
            return None
        if ":" not in binding.entry.principal:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return ApiError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")

    def _noticed(self) -> None:
        self._keep("ACL changes", self._refresh_patiently)

    async def _refresh_patiently(self) -> None:
        """Read the changed lists, once the store is available."""
        while True:
            try:
                await self._stored.refresh()
            except BROKEN as error:
                logger.warning("ACL changes deferred, metadata store unavailable: %s", error)
                await self._store.wait_until_reachable()
            else:
                return


async def _numbered(filters: Iterable[AclFilter], slices: Slices) -> dict[str | None, list[int]]:
    """The places of filters by the one name that they are about; None is for several names.

    A request may delete thousands of lists by thousands of filters: each is only held against
    those that it can be about.
    """
    found: defaultdict[str | None, list[int]] = defaultdict(list)
    async for number, one in slices.each(enumerate(filters)):
        found[None if one.pattern_type is PatternType.MATCH else one.name].append(number)
    return found


def authorizer_settings(config: BrokerConfig) -> AuthorizerSettings:
    """Authorization settings of a configuration."""
    named = (one.strip() for one in config.super_users.split(";"))
    return AuthorizerSettings(
        super_users=frozenset(filter(None, named)),
        allows_without_acls=config.allow_everyone_if_no_acl_found,
        is_standard=config.authorizer_class_name == STANDARD_AUTHORIZER,
        max_cached_decisions=config.authorizer_max_cached_decisions,
    )


def _flaw_of_host(host: str) -> str | None:
    """StandardAuthorizer's objection to a host, if any."""
    if not host:
        return "Host pattern cannot be null or empty"
    if is_range(host):
        try:
            range_of(host)
        except ValueError as error:
            return f"Invalid CIDR notation '{host}': {error}"
    return None


def _flaw(binding: AclBinding) -> str | None:
    """Reason why an entry is invalid; in the words of Apache Kafka's StandardAuthorizer."""
    pattern, entry = binding
    words = (
        ("resourceType", pattern.resource_type, pattern.resource_type in _TYPES),
        ("patternType", pattern.pattern_type, pattern.pattern_type in TREES),
        ("operation", entry.operation, entry.operation > AclOperation.ANY),
        ("permissionType", entry.permission_type, entry.permission_type in _PERMISSIONS),
    )
    for what, word, is_right in words:
        if not is_right:
            return f"Invalid {what} {word.name}"
    if not can_be_stored(pattern.name):
        return f"Resource name cannot be stored: {pattern.name!r}"
    if ":" not in entry.principal:
        return f"Could not parse principal from `{entry.principal}` {_NO_COLON}"
    return None


def _unusable(wanted: AclFilter) -> ApiError | None:
    """Reason why StandardAuthorizer refuses a filter; for AclAuthorizer it only matches nothing."""
    if not wanted.resource_type or not wanted.pattern_type:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if not wanted.operation or not wanted.permission_type:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def _unknown(wanted: AclFilter, unread: Mapping[ResourcePattern, StoreError]) -> ApiError | None:
    """Error of a filter whose matches are unknown: a list that it names could not be read."""
    errors = (error for pattern, error in unread.items() if wanted.matches_pattern(pattern))
    return _api_error(next(errors, None))


def _api_error(error: StoreError | None) -> ApiError | None:
    """Client's error for a write that failed, or may have."""
    if error is None:
        return None
    if isinstance(error, TooLargeError):
        return ApiError(ErrorCode.INVALID_REQUEST, f"Too many entries: {error.reason}")
    if isinstance(error, OutcomeUnknownError):
        text = f"It may have been changed or not: {error.reason}"
        return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"Nothing was changed: {error.reason}")
