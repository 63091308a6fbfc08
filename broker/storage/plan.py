"""Choice of the directories to format, and the identity of each.

Before anything is written, all directories must agree with the request: what was formatted for
another node or cluster is left alone, and so is all beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from protocol.uuids import draw_uuid, is_reserved, to_base64
from storage.directory.meta_properties import FORMATTED, MetaProperties
from storage.errors import DirectoryRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from broker.storage.bootstrap import Bootstrap, FormatRequest
    from broker.storage.node import Node


class Kind(Enum):
    """Purpose of a directory, in the words that `format` shows."""

    DATA = "data directory"
    STATIC_METADATA = "metadata directory"
    DYNAMIC_METADATA = "dynamic metadata directory"
    VOTER_METADATA = "dynamic metadata voter directory"


@dataclass(frozen=True, slots=True)
class FoundDirectories:
    """Directories as they are before anything is written, by path."""

    formatted: Mapping[str, MetaProperties]
    unformatted: tuple[str, ...]
    """Without `meta.properties`; they need not exist."""
    unreadable: Mapping[str, str]
    """With the reason."""


@dataclass(frozen=True, slots=True)
class NewDirectory:
    """One directory to format."""

    path: str
    kind: Kind
    identity: MetaProperties


def plan_directories(
    request: FormatRequest,
    node: Node,
    found: FoundDirectories,
    bootstrap: Bootstrap,
    random_bytes: Callable[[int], bytes],
) -> list[NewDirectory]:
    """Choose the directories to format, none if all are. Raises DirectoryRefusedError."""
    _check_formatted(request, node, found.formatted)
    if found.formatted and not request.ignores_formatted:
        raise DirectoryRefusedError(
            f"log directory {min(found.formatted)} is already formatted; "
            "--ignore-formatted formats the others"
        )
    if not (found.formatted or found.unformatted):
        raise DirectoryRefusedError("no log directory can be formatted")
    own = {voter.node_id: voter.directory_id for voter in bootstrap.voters}.get(node.node_id)
    planned = []
    for path in found.unformatted:
        kind, directory_id = Kind.DATA, None
        if path == node.metadata_log_dir:
            kind, directory_id = _kind(bootstrap, own), own
        identity = MetaProperties(
            node.node_id, request.cluster_id, directory_id or draw_uuid(random_bytes), FORMATTED
        )
        planned.append(NewDirectory(path, kind, identity))
    return planned


def _kind(bootstrap: Bootstrap, own: UUID | None) -> Kind:
    if not bootstrap.voters:
        return Kind.STATIC_METADATA
    return Kind.DYNAMIC_METADATA if own is None else Kind.VOTER_METADATA


def _check_formatted(
    request: FormatRequest, node: Node, formatted: Mapping[str, MetaProperties]
) -> None:
    """Raise DirectoryRefusedError for a directory of another node or cluster, or a copy of one."""
    seen: dict[UUID, str] = {}
    for path, identity in sorted(formatted.items()):
        for name, found, wanted in (
            ("cluster.id", identity.cluster_id, request.cluster_id),
            ("node.id", identity.broker_id, node.node_id),
        ):
            if found is not None and found != wanted:
                raise DirectoryRefusedError(
                    f"{path}/meta.properties has {name} {found}, not {wanted}: the directory "
                    "belongs to another node or cluster"
                )
        directory_id = identity.directory_id
        if directory_id is None:
            continue
        shown = to_base64(directory_id)
        if is_reserved(directory_id):
            raise DirectoryRefusedError(f"{path}/meta.properties has a reserved id, {shown}")
        if directory_id in seen:
            raise DirectoryRefusedError(f"{seen[directory_id]} and {path} share the id {shown}")
        seen[directory_id] = path
