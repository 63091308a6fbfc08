"""Decision about a new cluster: levels of features, records, and the first voters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.storage.node import SERVERS, VOTERS
from broker.storage.scram_arguments import credential_record
from controller.bootstrap.checkpoint import bootstrap_records, encode_checkpoint
from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.feature_levels import parse_level, starting_levels
from controller.bootstrap.metadata_versions import of_level, of_release
from controller.bootstrap.voters import LOCAL_HOST, Voter, parse_voters, voters_record
from controller.image.features import KRAFT_VERSION, METADATA_VERSION, SCRAM_SINCE
from protocol.metadata_log.log_records import FeatureLevelRecord
from protocol.uuids import draw_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.storage.node import Node
    from protocol.schema import MetadataRecord


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """The command line of `format`, as it was written."""

    cluster_id: str
    release: str | None = None
    features: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    """Arguments of `--add-scram`."""
    initial_controllers: str | None = None
    is_standalone: bool = False
    has_no_initial_controllers: bool = False
    ignores_formatted: bool = False


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Contents of a new cluster's metadata log."""

    levels: Mapping[str, int]
    """Level of every feature, `metadata.version` and `kraft.version` included."""
    records: tuple[MetadataRecord, ...]
    voters: tuple[Voter, ...]
    """Empty if the property file or another node's checkpoint names them."""

    @property
    def release(self) -> str:
        """The name of the `metadata.version`."""
        return of_level(self.levels[METADATA_VERSION]).name

    @property
    def kraft_version(self) -> int:
        """1 if voters can change."""
        return self.levels[KRAFT_VERSION]

    def checkpoint(self, controller_listener: str, now_ms: int) -> bytes:
        """The snapshot that the metadata log of a controller begins with."""
        voters = voters_record(self.voters, controller_listener) if self.voters else None
        return encode_checkpoint(self.records, self.kraft_version, voters, now_ms)

    def describe(self) -> str:
        """The records, for whoever formats: no secrets."""
        levels = [one for one in self.records if isinstance(one, FeatureLevelRecord)]
        shown = [f"{one.name}={one.feature_level}" for one in levels]
        users = len(self.records) - len(levels)
        return ", ".join([*shown, f"SCRAM credentials: {users}"] if users else shown)


def decide_bootstrap(
    request: FormatRequest, node: Node, random_bytes: Callable[[int], bytes]
) -> Bootstrap:
    """Choose levels, records and voters for a request. Raises BootstrapError."""
    voters = _voters(request, node, random_bytes)
    unstable = node.has_unstable_features
    levels = starting_levels(
        None if request.release is None else of_release(request.release, unstable=unstable),
        map(parse_level, request.features),
        is_dynamic=not node.has_static_voters,
        unstable=unstable,
    )
    if request.credentials and levels[METADATA_VERSION] < SCRAM_SINCE:
        first = of_level(SCRAM_SINCE)
        raise BootstrapError(f"--add-scram: SCRAM credentials need {first} or later")
    credentials = [credential_record(one, random_bytes) for one in request.credentials]
    return Bootstrap(levels, tuple(bootstrap_records(levels, credentials)), voters)


def _voters(
    request: FormatRequest, node: Node, random_bytes: Callable[[int], bytes]
) -> tuple[Voter, ...]:
    is_given = request.is_standalone or request.initial_controllers is not None
    if is_given and node.has_static_voters:
        raise BootstrapError(
            f"{VOTERS} is set: voters are either there, or given by --standalone or "
            f"--initial-controllers; remove it and set {SERVERS}"
        )
    if request.initial_controllers is not None:
        return parse_voters(request.initial_controllers)
    if request.is_standalone:
        if node.controller_address is None:
            raise BootstrapError("--standalone is for controllers, which this node is not")
        host, port = node.controller_address
        return (Voter(node.node_id, draw_uuid(random_bytes), host or LOCAL_HOST, port),)
    if node.is_controller and not (node.has_static_voters or request.has_no_initial_controllers):
        raise BootstrapError(
            f"{VOTERS} is not set on this controller: use --standalone, --initial-controllers or "
            "--no-initial-controllers"
        )
    return ()
