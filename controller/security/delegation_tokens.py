"""Delegation tokens (KIP-48): short-lived secrets with which a client's helpers log in.

Every broker reads and writes them in the metadata store by itself, keeps a copy of them all, and
learns of changes by notifications. Writes are conditional, together with their notification, and
repeated after a concurrent one; Apache Kafka's are not, so one of two changes may be lost there.

The rules are those of Apache Kafka 4 (`DelegationTokenControlManager`): a renewal prolongs a token
by `delegation.token.expiry.time.ms` at most, and expiry is checked before ownership.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import logging
from typing import TYPE_CHECKING

from controller.metadata_store.store import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    SetData,
    StoreError,
)
from controller.security.change_notifications import ChangeNotifications
from controller.security.delegation_token_znodes import (
    PERSISTENT_TOKEN_PATHS,
    TOKEN_CHANGE_PREFIX,
    TOKEN_CHANGES,
    TOKENS,
    DelegationToken,
    decode_token,
    decode_token_change,
    encode_token,
    encode_token_change,
    token_path,
)
from controller.znodes import MalformedZnodeError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controller.metadata_store.store import MetadataStore, Operation, Znode

WRITE_ATTEMPTS = 5
"""Number of attempts of a conditional write. Fixed: each failure is another writer's success, and
the client asks again."""
READ_AT_ONCE = 500
"""Tokens that are read in one flight. Fixed: it bounds what a flight holds."""

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class TokenLifetimes:
    """Limits of token lifetimes."""

    max_ms: int
    """Regardless of renewals: `delegation.token.max.lifetime.ms`."""
    renewal_ms: int
    """Without renewal: `delegation.token.expiry.time.ms`."""


@dataclasses.dataclass(frozen=True, slots=True)
class TokenRequest:
    """Request for a token: requester, owner and renewers."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int
    """Not positive: as long as possible."""


class DelegationTokens:
    """This broker's copy of all tokens, and the way to change them. Errors are ApiErrors."""

    def __init__(
        self,
        store: MetadataStore,
        secret_key: str,
        lifetimes: TokenLifetimes,
        new_id: Callable[[], str],
    ) -> None:
        """`new_id` draws an unguessable, unique id."""
        self._store = store
        self._secret_key = secret_key.encode()
        self._lifetimes = lifetimes
        self._new_id = new_id
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        """Token ids by HMAC."""
        self._listeners: list[Callable[[str], None]] = []
        self.notifications = ChangeNotifications(
            store, TOKEN_CHANGES, lambda data: self._changed(decode_token_change(data)), self.load
        )
        """Has to be refreshed when `on_news` is called."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the id of each new or removed token."""
        self._listeners.append(listener)

    def hmac_of(self, token_id: str) -> bytes:
        """The secret of a token: HMAC-SHA512 of its id."""
        return hmac.digest(self._secret_key, token_id.encode(), hashlib.sha512)

    def get(self, token_id: str) -> DelegationToken | None:
        """The token of that id, expired or not."""
        return self._tokens.get(token_id)

    def all(self) -> Iterable[DelegationToken]:
        """All tokens, expired ones included until they are removed."""
        return self._tokens.values()

    async def start(self) -> None:
        """Create the missing paths, read all tokens, and begin to watch for changes."""
        for path in PERSISTENT_TOKEN_PATHS:
            if await self._store.exists(path) is None:
                try:
                    await self._store.create(path, None)
                except NodeExistsError:
                    logger.debug("%s was made by another broker", path)
        await self.notifications.refresh()
        await self.load()

    async def load(self) -> None:
        """Read all tokens, and forget those that no longer exist."""
        names = await self._store.children(TOKENS)
        found: dict[str, DelegationToken] = {}
        for start in range(0, len(names), READ_AT_ONCE):
            some = names[start : start + READ_AT_ONCE]
            nodes = await self._store.get_many([token_path(name) for name in some])
            for name, node in zip(some, nodes, strict=True):
                token = _read(name, node)
                if token is not None:
                    found[name] = token
        for gone in self._tokens.keys() - found.keys():
            self._forget(gone)
        for token in found.values():
            self._keep(token)
        logger.info("delegation tokens loaded: %d", len(found))

    async def create(self, request: TokenRequest, now_ms: int) -> DelegationToken:
        """Make a token, which every broker accepts once notified."""
        most, asked = self._lifetimes.max_ms, request.max_lifetime_ms
        max_ms = now_ms + (min(asked, most) if asked > 0 else most)
        token = DelegationToken(
            token_id=self._new_id(),
            owner=request.owner,
            requester=request.requester,
            renewers=request.renewers,
            issue_ms=now_ms,
            max_ms=max_ms,
            expiry_ms=min(max_ms, now_ms + self._lifetimes.renewal_ms),
        )
        path = token_path(token.token_id)
        await self._write(token.token_id, Create(path, encode_token(token)))
        self._keep(token)
        logger.info("delegation token created: %s for %s", token.token_id, token.owner)
        return token

    async def renew(self, principal: str, secret: bytes, period_ms: int, now_ms: int) -> int:
        """Prolong a token from now on; returns when it expires."""
        most = self._lifetimes.renewal_ms

        def prolong(token: DelegationToken) -> int:
            _require_unexpired(token, now_ms)
            _require_renewer(token, principal)
            return now_ms + (min(period_ms, most) if period_ms > 0 else most)

        return await self._alter(secret, prolong)

    async def expire(self, principal: str, secret: bytes, period_ms: int, now_ms: int) -> int:
        """Have a token end in `period_ms`, negative for at once; returns when it expires."""

        def shorten(token: DelegationToken) -> int | None:
            _require_renewer(token, principal)
            if period_ms < 0:
                return None
            _require_unexpired(token, now_ms)
            return now_ms + period_ms

        expiry_ms = await self._alter(secret, shorten)
        return now_ms if period_ms < 0 else expiry_ms

    async def remove_expired(self, now_ms: int) -> None:
        """Remove expired tokens; one that is renewed meanwhile stays."""
        for token in [token for token in self._tokens.values() if token.is_expired(now_ms)]:
            node = await self._store.exists(token_path(token.token_id))
            fresh = _read(token.token_id, node)
            if node is not None and fresh is not None and not fresh.is_expired(now_ms):
                self._keep(fresh)
            elif node is None or await self._remove(token.token_id, node.version):
                self._forget(token.token_id)
                logger.info("delegation token expired: %s of %s", token.token_id, token.owner)

    async def _alter(self, secret: bytes, expiry: Callable[[DelegationToken], int | None]) -> int:
        """Give a token another time of expiry, or remove it; returns that time, 0 if removed."""
        token_id = self._ids.get(secret)
        if token_id is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        for _ in range(WRITE_ATTEMPTS):
            node = await self._store.exists(token_path(token_id))
            token = _read(token_id, node)
            if node is None or token is None:
                self._forget(token_id)
                raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            asked_ms = expiry(token)
            if asked_ms is None:
                if await self._remove(token_id, node.version):
                    self._forget(token_id)
                    logger.info("delegation token removed: %s of %s", token_id, token.owner)
                    return 0
                continue
            altered = dataclasses.replace(token, expiry_ms=min(token.max_ms, asked_ms))
            write = SetData(token_path(token_id), encode_token(altered), node.version)
            try:
                await self._write(token_id, write)
            except (BadVersionError, NoNodeError):
                continue
            self._keep(altered)
            logger.info("delegation token expiry changed: %s of %s", token_id, token.owner)
            return altered.expiry_ms
        raise StoreError(token_path(token_id), "is being changed by others")

    async def _remove(self, token_id: str, version: int) -> bool:
        """Remove this version of the token; returns whether it is gone."""
        try:
            await self._write(token_id, Delete(token_path(token_id), version))
        except BadVersionError:
            return False
        except NoNodeError:
            return True
        return True

    async def _write(self, token_id: str, write: Operation) -> None:
        news = Create(TOKEN_CHANGE_PREFIX, encode_token_change(token_id), sequence=True)
        await self._store.multi([write, news])

    async def _changed(self, token_id: str) -> None:
        if not token_id or "/" in token_id:
            logger.error("change of a delegation token ignored: %r is no id", token_id)
            return
        token = _read(token_id, await self._store.exists(token_path(token_id)))
        if token is None:
            self._forget(token_id)
        else:
            self._keep(token)

    def _keep(self, token: DelegationToken) -> None:
        is_new = token.token_id not in self._tokens
        self._tokens[token.token_id] = token
        if is_new:
            self._ids[self.hmac_of(token.token_id)] = token.token_id
            self._tell(token.token_id)

    def _forget(self, token_id: str) -> None:
        if self._tokens.pop(token_id, None) is not None:
            del self._ids[self.hmac_of(token_id)]
            self._tell(token_id)

    def _tell(self, token_id: str) -> None:
        for listener in self._listeners:
            listener(token_id)


def _read(token_id: str, node: Znode | None) -> DelegationToken | None:
    """Return the token in a node; None if there is none. An unreadable one is logged."""
    if node is None:
        return None
    try:
        token = decode_token(token_path(token_id), node.data)
    except MalformedZnodeError as error:
        logger.error("delegation token ignored: %s", error)  # noqa: TRY400
        return None
    # The id in the path counts: the HMAC is computed from it.
    return None if token is None else dataclasses.replace(token, token_id=token_id)


def _require_unexpired(token: DelegationToken, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _require_renewer(token: DelegationToken, principal: str) -> None:
    """The owner may renew and expire it, and so may its renewers; its requester may not."""
    if principal != token.owner and principal not in token.renewers:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
