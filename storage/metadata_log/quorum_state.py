"""`quorum-state`: the newest epoch of the quorum that this node knows of, and its leader (KIP-595).

Version 0 lists the voters of a static quorum. Version 1, with KIP-853, has the directory of the
candidate that was voted for instead. An observer votes for nobody; the vote of an earlier life as a
voter is kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.uuids import ZERO_UUID, to_base64
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.filesystem import FileSystem

NAME: Final = "quorum-state"
NOBODY: Final = -1
VERSIONS: Final = (0, 1)


class QuorumState(NamedTuple):
    """Fields of both versions."""

    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: str = to_base64(ZERO_UUID)


def encode(state: QuorumState, kraft_version: int, voters: Sequence[int] = ()) -> bytes:
    """Content of the file. `voters` are those of a static quorum."""
    fields: dict[str, Any]
    if kraft_version == 0:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voters],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": state.voted_directory_id,
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(data: bytes) -> QuorumState:
    """Inverse of `encode`, for either version; raises DamagedFileError."""
    try:
        fields = json.loads(data)
        if fields["data_version"] not in VERSIONS:
            raise DamagedFileError(f"{NAME}: version {fields['data_version']} is not known")
        state = QuorumState(
            fields["leaderEpoch"],
            fields["leaderId"],
            fields.get("votedId", NOBODY),
            fields.get("votedDirectoryId", to_base64(ZERO_UUID)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFileError(f"{NAME}: holds no epoch and leader") from error
    if not (type(state.leader_epoch) is type(state.leader_id) is int and state.leader_epoch >= 0):
        raise DamagedFileError(f"{NAME}: epoch {state.leader_epoch!r}, leader {state.leader_id!r}")
    return state


def read(filesystem: FileSystem, directory: str) -> QuorumState:
    """Read the file; epoch 0 without a leader if there is none. Raises DamagedFileError."""
    try:
        return decode(filesystem.read(f"{directory}/{NAME}"))
    except FileNotFoundError:
        return QuorumState()


def write(filesystem: FileSystem, directory: str, content: bytes) -> None:
    """Put the file in place and wait for the disk."""
    filesystem.replace(f"{directory}/{NAME}", content, sync=True)
