"""The first voters of a quorum whose voters can change (KIP-853).

Written `id@host:port:directory-id`, separated by commas, and in brackets if the host is an IPv6
address. All nodes are formatted with the same list.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from config.listeners.addresses import HIGHEST_PORT, java_address
from controller.bootstrap.errors import BootstrapError
from protocol.metadata_log.control_records import VotersRecord
from protocol.uuids import from_base64, is_reserved, to_base64

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

_VOTER: Final = re.compile(
    r"(?P<id>[^@]+)@(?:\[(?P<address>[^\]]*)\]|(?P<name>[^\[:][^:]*|)):"
    r"(?P<port>[^:]*):(?P<directory>.*)",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"\+?[0-9]{1,10}", re.ASCII)
_DIRECTORY: Final = re.compile(r"([A-Za-z0-9_-]{22})(?:==)?", re.ASCII)
_HIGHEST_ID: Final = (1 << 31) - 1
_KRAFT_VERSIONS: Final = (0, 1)
"""Range of `kraft.version` that is written for every voter, as Apache Kafka does."""
LOCAL_HOST: Final = "localhost"
"""Stands for a host that is not given, as in Java."""


class Voter(NamedTuple):
    """One controller."""

    node_id: int
    directory_id: UUID
    """Id of its metadata log directory."""
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}:{to_base64(self.directory_id)}"


def parse_voters(text: str) -> tuple[Voter, ...]:
    """The voters of a list, by id. Raises BootstrapError."""
    voters = sorted(_parse(part) for part in text.strip().split(",") if part)
    if not voters:
        raise BootstrapError("a quorum has at least one voter, and none is given")
    for one, other in itertools.pairwise(voters):
        if one.node_id == other.node_id:
            raise BootstrapError(f"node {one.node_id} is there more than once: {one}, {other}")
    return tuple(voters)


def voters_record(voters: Iterable[Voter], listener: str) -> VotersRecord:
    """The record of the voters, each reached at its listener of that name."""
    lowest, highest = _KRAFT_VERSIONS
    voter = VotersRecord.Voter
    return VotersRecord(
        version=0,
        voters=[
            voter(
                voter_id=one.node_id,
                voter_directory_id=one.directory_id,
                endpoints=[
                    voter.Endpoint(
                        name=listener.upper(),
                        host=java_address(one.host) or LOCAL_HOST,
                        port=one.port,
                    )
                ],
                kraft_version_feature=voter.KRaftVersionFeature(
                    min_supported_version=lowest, max_supported_version=highest
                ),
            )
            for one in voters
        ],
    )


def _parse(text: str) -> Voter:
    match = _VOTER.fullmatch(text.strip())
    if match is None:
        raise _malformed(text, "it is written id@host:port:directory-id")
    directory = _DIRECTORY.fullmatch(match["directory"])
    if directory is None:
        raise _malformed(text, "its directory id is not 22 characters of base64")
    directory_id = from_base64(directory[1])
    if is_reserved(directory_id):
        raise _malformed(text, "its directory id is reserved")
    return Voter(
        _number(text, match["id"], _HIGHEST_ID),
        directory_id,
        match["address"] or match["name"] or "",
        _number(text, match["port"], HIGHEST_PORT),
    )


def _number(voter: str, text: str, highest: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > highest:
        raise _malformed(voter, f"'{text}' is not a number from 0 to {highest}")
    return int(text)


def _malformed(text: str, why: str) -> BootstrapError:
    return BootstrapError(f"voter '{text.strip()}' is malformed: {why}")
