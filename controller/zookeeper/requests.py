"""Converts the port's operations to kazoo's requests, and its answers to the port's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kazoo import exceptions as kazoo
from kazoo.protocol import serialization as wire

from controller.metadata_store.store import (
    BadVersionError,
    Create,
    Delete,
    EphemeralParentError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    OutcomeUnknownError,
    Result,
    SessionExpiredError,
    SetData,
    StoreError,
    StoreUnavailableError,
    Znode,
)
from controller.zookeeper.kazoo_client import NotConnectedError
from controller.zookeeper.security import acl_of
from controller.zookeeper.session import was_lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.zookeeper.address import ZooKeeperAddress

EPHEMERAL_FLAG = 1
SEQUENCE_FLAG = 2

UNREACHABLE = "ZooKeeper cannot be reached"
NO_ACCESS = "ZooKeeper refuses access: the znode belongs to somebody else (zookeeper.set.acl)"
NO_IDENTITY = (
    "ZooKeeper does not know who this broker is, so znodes cannot be made for it alone "
    "(zookeeper.set.acl)"
)

_REFUSALS: dict[type[BaseException], tuple[type[StoreError], str]] = {
    kazoo.NoNodeError: (NoNodeError, "no such node, or no parent to create it below"),
    kazoo.NodeExistsError: (NodeExistsError, "the node exists"),
    kazoo.BadVersionError: (BadVersionError, "the node has another version"),
    kazoo.NotEmptyError: (NotEmptyError, "the node has children"),
    kazoo.NoChildrenForEphemeralsError: (EphemeralParentError, "its parent is ephemeral"),
    kazoo.NoAuthError: (StoreUnavailableError, NO_ACCESS),
    kazoo.InvalidACLError: (StoreUnavailableError, NO_IDENTITY),
    kazoo.SessionExpiredError: (SessionExpiredError, "the session has expired"),
    kazoo.ConnectionClosedError: (SessionExpiredError, "the session is closed"),
    NotConnectedError: (StoreUnavailableError, UNREACHABLE),
}

_FOLLOWERS = (kazoo.RolledBackError, kazoo.RuntimeInconsistency)
"""The results of operations that failed only because another one of their transaction did."""


def write_request(operation: Operation, address: ZooKeeperAddress, *, sets_acl: bool) -> Any:  # noqa: ANN401
    """One operation as kazoo's request."""
    path = address.full(operation.path)
    if isinstance(operation, Create):
        flags = EPHEMERAL_FLAG * operation.ephemeral | SEQUENCE_FLAG * operation.sequence
        acl = acl_of(operation.path, sets_acl=sets_acl)
        return wire.Create(path, operation.data, acl, flags)
    if isinstance(operation, SetData):
        return wire.SetData(path, operation.data, operation.version)
    if isinstance(operation, Delete):
        return wire.Delete(path, operation.version)
    return wire.CheckVersion(path, operation.version)


def transaction_request(
    operations: Sequence[Operation], address: ZooKeeperAddress, *, sets_acl: bool
) -> Any:  # noqa: ANN401
    """All operations as one request; a single one, unless a check, needs no transaction."""
    requests = [write_request(operation, address, sets_acl=sets_acl) for operation in operations]
    if len(requests) == 1 and not isinstance(requests[0], wire.CheckVersion):
        return requests[0]
    return wire.Transaction(requests)


def transaction_results(
    operations: Sequence[Operation],
    answer: Any,  # noqa: ANN401
    address: ZooKeeperAddress,
) -> list[Result]:
    """The result of each operation. Raises the StoreError of the one that failed."""
    answers = answer if isinstance(answer, list) else [answer]
    for index, (operation, one) in enumerate(zip(operations, answers, strict=True)):
        if isinstance(one, Exception) and not isinstance(one, _FOLLOWERS):
            raise store_error(operation.path, one, index)
    return [
        _result(operation, one, address) for operation, one in zip(operations, answers, strict=True)
    ]


def znode(data: bytes | None, stat: Any) -> Znode:  # noqa: ANN401
    """A node as the port has it."""
    return Znode(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def store_error(
    path: str, error: BaseException, operation: int = 0, *, is_write: bool = True
) -> StoreError:
    """The port's error for kazoo's."""
    if was_lost(error):
        if is_write:
            return OutcomeUnknownError(path, "the connection to ZooKeeper broke", operation)
        return StoreUnavailableError(path, UNREACHABLE, operation)
    kind, reason = _REFUSALS.get(
        type(error), (StoreUnavailableError, f"ZooKeeper refuses: {type(error).__name__} {error}")
    )
    return kind(path, reason, operation)


def _result(operation: Operation, answer: Any, address: ZooKeeperAddress) -> Result:  # noqa: ANN401
    if isinstance(operation, Create):
        return address.own(str(answer))
    if isinstance(operation, SetData):
        return znode(operation.data, answer)
    return None
