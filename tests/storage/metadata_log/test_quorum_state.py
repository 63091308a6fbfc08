"""`quorum-state` as Apache Kafka 4.4 wrote it, read and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem
from storage.metadata_log import quorum_state
from storage.metadata_log.quorum_state import QuorumState

if TYPE_CHECKING:
    from pathlib import Path

VERSION_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
VERSION_1 = (
    b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


@pytest.mark.parametrize(("content", "kraft_version"), [(VERSION_0, 0), (VERSION_1, 1)])
def test_quorum_state_of_apache_is_written_again_byte_for_byte(
    content: bytes, kraft_version: int
) -> None:
    state = quorum_state.decode(content)
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (2, 1, -1)
    assert quorum_state.encode(state, kraft_version, [1]) == content


def test_node_without_the_file_knows_of_no_leader(tmp_path: Path) -> None:
    filesystem = LocalFileSystem()
    assert quorum_state.read(filesystem, str(tmp_path)) == QuorumState(0, -1, -1)
    quorum_state.write(filesystem, str(tmp_path), VERSION_1)
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]
    assert quorum_state.read(filesystem, str(tmp_path)).leader_epoch == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        VERSION_1.replace(b'"data_version":1', b'"data_version":2'),
        VERSION_1.replace(b'"leaderEpoch":2', b'"leaderEpoch":-2'),
        VERSION_1.replace(b'"leaderEpoch":2', b'"leaderEpoch":"2"'),
        VERSION_1[:-1],
    ],
)
def test_damaged_quorum_state_is_refused(content: bytes) -> None:
    with pytest.raises(DamagedFileError, match="quorum-state"):
        quorum_state.decode(content)
