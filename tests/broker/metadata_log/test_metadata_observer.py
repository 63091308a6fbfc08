"""A broker's replica of the metadata log at work: in virtual time, beside a model of a leader."""

from __future__ import annotations

import json
import logging
import shutil
from typing import TYPE_CHECKING

import pytest

from broker.metadata_log.settings import SnapshotSettings
from controller.raft.effects import Election
from controller.raft.errors import QuorumError
from protocol.messages.fetch import FetchRequest
from protocol.metadata_log.batches import UnreadableMetadataError
from protocol.metadata_log.control_records import VotersRecord
from protocol.metadata_log.log_records import BeginTransactionRecord
from protocol.metadata_log.snapshots import QuorumInForce, SnapshotContent, SnapshotId
from protocol.records.builder import NewRecord, build_batch
from protocol.uuids import ZERO_UUID
from tests.broker.metadata_log.following import (
    LEADER,
    OTHER,
    ModelQuorum,
    follow,
    follow_and_die,
)
from tests.storage.metadata_log.opened import SMALL
from tests.support.broker_parts.metadata_leader import (
    NOW_MS,
    MetadataLeader,
    feature,
    leader_change,
    snapshot_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from controller.image.delta import MetadataDelta
    from controller.image.metadata_image import MetadataImage


class Recorder:
    """A publisher that keeps the features of each image."""

    name = "recorder"

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.seen.append(sorted(image.features))


def new_leader(*names: str) -> MetadataLeader:
    leader = MetadataLeader(addresses={1: LEADER, 2: OTHER})
    leader.lead(1)
    for name in names:
        leader.append(feature(name))
    return leader


def segments(directory: Path) -> bytes:
    """The log's bytes."""
    found = sorted((directory / "__cluster_metadata-0").glob("*.log"))
    return b"".join(path.read_bytes() for path in found)


def test_log_has_the_leaders_bytes_and_the_image_what_they_say(tmp_path: Path) -> None:
    leader = new_leader("a", "b")

    follower = follow(tmp_path, ModelQuorum({LEADER: leader}))

    assert segments(tmp_path) == b"".join(leader.batches)
    assert sorted(follower.image.features) == ["a", "b"]
    assert follower.image.provenance.offset == 2
    assert follower.observer.caught_up.is_set()
    assert follower.observer.election == Election(1, 1)
    assert follower.observer.leader_address == LEADER


def test_quorum_state_is_that_of_the_leader_which_was_followed(tmp_path: Path) -> None:
    follow(tmp_path, ModelQuorum({LEADER: new_leader("a")}))
    written = json.loads((tmp_path / "__cluster_metadata-0" / "quorum-state").read_text())
    assert (written["leaderEpoch"], written["leaderId"], written["data_version"]) == (1, 1, 0)


def test_what_is_not_committed_is_in_the_log_and_not_in_the_image(tmp_path: Path) -> None:
    leader = new_leader("a", "b")
    leader.high_watermark = 2

    follower = follow(tmp_path, ModelQuorum({LEADER: leader}))

    assert follower.log.log.log_end_offset == 3
    assert sorted(follower.image.features) == ["a"]
    assert follower.image.provenance.offset == 1


def test_publishers_hear_of_the_image_only_when_it_has_caught_up(tmp_path: Path) -> None:
    leader, recorder = new_leader("a", "b"), Recorder()
    leader.high_watermark = -1
    quorum = ModelQuorum({LEADER: leader})

    assert not follow(tmp_path, quorum, publishers=[recorder]).observer.caught_up.is_set()
    assert recorder.seen == []

    leader.high_watermark = 3
    follow(tmp_path, quorum, publishers=[recorder])
    assert recorder.seen == [["a", "b"]]


def test_quorum_without_any_record_yet_is_not_caught_up_with(tmp_path: Path) -> None:
    follower = follow(tmp_path, ModelQuorum({LEADER: new_leader()}))
    assert follower.image.provenance.offset == 0
    assert not follower.observer.caught_up.is_set()


def test_restart_goes_on_where_the_log_ends(tmp_path: Path) -> None:
    leader = new_leader("a")
    quorum = ModelQuorum({LEADER: leader})
    follow(tmp_path, quorum)
    leader.append(feature("b"))
    leader.asked.clear()

    follower = follow(tmp_path, quorum)

    offsets = {
        one.topics[0].partitions[0].fetch_offset
        for one in leader.asked
        if isinstance(one, FetchRequest)
    }
    assert offsets == {2, 3}
    assert sorted(follower.image.features) == ["a", "b"]
    assert segments(tmp_path) == b"".join(leader.batches)


def test_log_that_was_compacted_away_comes_as_a_snapshot(tmp_path: Path) -> None:
    leader = new_leader("a", "b")
    snapshot_id = leader.compact([feature("a"), feature("c")])
    leader.append(feature("d"))

    follower = follow(tmp_path, ModelQuorum({LEADER: leader}))

    directory = tmp_path / "__cluster_metadata-0"
    path = directory / "00000000000000000003-0000000001.checkpoint"
    assert path.read_bytes() == leader.snapshots[snapshot_id]
    assert sorted(follower.image.features) == ["a", "c", "d"]
    assert segments(tmp_path) == leader.batches[0]
    assert (directory / "00000000000000000003.log").exists()


def test_restart_reads_the_newest_snapshot_before_the_quorum_answers(tmp_path: Path) -> None:
    leader = new_leader("a")
    leader.compact([feature("a"), feature("c")])
    leader.append(feature("d"))
    follow(tmp_path, ModelQuorum({LEADER: leader}))

    follower = follow(tmp_path, ModelQuorum({}))

    assert sorted(follower.image.features) == ["a", "c"], "what comes after may not be committed"
    assert not follower.observer.caught_up.is_set()


def test_records_that_a_new_leader_does_not_have_are_cut_off(tmp_path: Path) -> None:
    old = new_leader("a", "lost")
    old.high_watermark = 2
    follow(tmp_path, ModelQuorum({LEADER: old}))
    new = MetadataLeader(node_id=2, addresses={2: OTHER}, batches=old.batches[:2])
    new.lead(2)
    new.append(feature("b"))

    follower = follow(tmp_path, ModelQuorum({OTHER: new}))

    assert segments(tmp_path) == b"".join(new.batches)
    assert sorted(follower.image.features) == ["a", "b"]
    assert follower.observer.election == Election(2, 2)


def test_leader_is_followed_to_where_it_goes(tmp_path: Path) -> None:
    old, new = new_leader("a"), MetadataLeader(node_id=2, addresses={2: OTHER})
    new.batches = list(old.batches)
    new.lead(2)
    old.epoch, old.leader_id = 2, 2
    follower = follow(tmp_path, ModelQuorum({LEADER: old, OTHER: new}))
    assert follower.observer.leader_address == OTHER
    assert segments(tmp_path) == b"".join(new.batches)


def test_server_that_does_not_answer_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        follow(tmp_path, ModelQuorum({}), 5000)
    assert caplog.text.count("controller at leader:9191 does not answer") == 1


def test_leader_that_would_undo_what_is_committed_ends_the_observer(tmp_path: Path) -> None:
    leader = new_leader("a", "b")
    quorum = ModelQuorum({LEADER: leader})
    snapshot_id = leader.compact([feature("a"), feature("b")])
    leader.append(feature("c"))
    follow(tmp_path, quorum)
    other = MetadataLeader(node_id=2, addresses={2: OTHER}, batches=[leader_change(1, 0, 1)])
    other.lead(2)

    with pytest.raises(QuorumError, match="below the high watermark 3"):
        follow(tmp_path, ModelQuorum({OTHER: other}))

    assert snapshot_id.end_offset == 3
    assert segments(tmp_path) == leader.batches[0], "nothing was cut"


def test_unreadable_record_ends_the_observer(tmp_path: Path) -> None:
    leader = new_leader("a")
    record = NewRecord(NOW_MS, None, b"\x02\x0c\x00")
    leader.batches.append(bytes(build_batch([record], base_offset=2, leader_epoch=1)))
    leader.high_watermark = 3
    with pytest.raises(UnreadableMetadataError, match="offset 2: a metadata record has frame"):
        follow(tmp_path, ModelQuorum({LEADER: leader}))


def test_snapshot_of_the_leader_without_a_footer_ends_the_observer(tmp_path: Path) -> None:
    leader = new_leader("a")
    snapshot_id = leader.compact([feature("a")])
    leader.snapshots[snapshot_id] = leader.snapshots[snapshot_id][:-73]
    with pytest.raises(UnreadableMetadataError, match=r"0002-0000000001\.checkpoint: .*"):
        follow(tmp_path, ModelQuorum({LEADER: leader}))


def own_snapshots(directory: Path) -> list[Path]:
    return sorted((directory / "__cluster_metadata-0").glob("*.checkpoint"))


def test_snapshot_of_the_image_is_made_after_so_many_bytes(tmp_path: Path) -> None:
    leader = new_leader("a", "b")
    total = len(b"".join(leader.batches))
    quorum = ModelQuorum({LEADER: leader})

    follow(tmp_path / "less", quorum, snapshots=SnapshotSettings(total + 1))
    follow(tmp_path / "enough", quorum, snapshots=SnapshotSettings(total))

    assert own_snapshots(tmp_path / "less") == []
    (path,) = own_snapshots(tmp_path / "enough")
    assert path.name == "00000000000000000003-0000000001.checkpoint"
    content = SnapshotContent(path.read_bytes())
    assert list(content.read())
    assert content.records == [feature("a"), feature("b")]
    assert content.last_contained_timestamp_ms == NOW_MS + 2


def test_snapshot_of_the_image_is_made_after_so_long(tmp_path: Path) -> None:
    quorum, settings = ModelQuorum({LEADER: new_leader("a")}), SnapshotSettings(1 << 30, 3000)
    follow(tmp_path / "before", quorum, 2900, snapshots=settings)
    follow(tmp_path / "after", quorum, 3600, snapshots=settings)
    follow(tmp_path / "never", quorum, 3600, snapshots=SnapshotSettings(1 << 30, 0))
    found = {path.name: len(own_snapshots(path)) for path in tmp_path.iterdir()}
    assert found == {"before": 0, "after": 1, "never": 0}


def test_no_snapshot_is_made_within_a_transaction(tmp_path: Path) -> None:
    leader = new_leader("a")
    leader.append(BeginTransactionRecord(), feature("b"))
    follow(tmp_path, ModelQuorum({LEADER: leader}), snapshots=SnapshotSettings(1))
    assert own_snapshots(tmp_path) == []


def test_own_snapshot_is_where_the_next_start_begins(tmp_path: Path) -> None:
    quorum = ModelQuorum({LEADER: new_leader("a", "b")})
    follow(tmp_path, quorum, snapshots=SnapshotSettings(1))
    follower = follow(tmp_path, ModelQuorum({}))
    assert follower.log.snapshots.newest == SnapshotId(3, 1)
    assert sorted(follower.image.features) == ["a", "b"]
    assert follower.image.provenance.offset == 2


@pytest.mark.parametrize("damage", ["checksum", "gap"])
def test_damaged_batch_is_left_out_and_fetched_again_after_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    leader = new_leader("a", "b", "c")
    good = leader.batches[2]
    if damage == "gap":
        leader.batches[2] = leader.batches[3]
    else:
        leader.batches[2] = good[:-1] + bytes([good[-1] ^ 1])
    quorum = ModelQuorum({LEADER: leader})

    with caplog.at_level(logging.ERROR):
        follower = follow(tmp_path, quorum, 300)

    assert follower.log.log.log_end_offset == 2
    assert sorted(follower.image.features) == ["a"]
    assert caplog.text.count("fetched metadata left out from offset 2 on") == 1
    assert 10 <= len(leader.asked) <= 20
    leader.batches[2] = good
    assert sorted(follow(tmp_path, quorum).image.features) == ["a", "b", "c"]


def test_old_snapshots_go_every_minute_and_their_files_a_minute_later(tmp_path: Path) -> None:
    leader = new_leader("a")
    quorum, often = ModelQuorum({LEADER: leader}), SnapshotSettings(1)
    found = []
    follow(tmp_path, quorum, snapshots=often)
    leader.append(feature("b"))
    follow(tmp_path, quorum, snapshots=often)
    for seconds in (59, 61, 122):
        directory = tmp_path / str(seconds)
        shutil.copytree(tmp_path / "__cluster_metadata-0", directory / "__cluster_metadata-0")
        settings = SMALL._replace(retention_bytes=0)
        follow(directory, quorum, seconds * 1000, settings)
        names = [path.name for path in (directory / "__cluster_metadata-0").iterdir()]
        kept = [int(name[:20]) for name in names if name.endswith(".checkpoint")]
        found.append((sorted(kept), sum(name.endswith(".deleted") for name in names)))
    assert found == [([2, 3], 0), ([3], 1), ([3], 0)]


def one_voter(**endpoints: tuple[str, int]) -> VotersRecord:
    """Voter 1 with these endpoints, by listener."""
    voter = VotersRecord.Voter
    return VotersRecord(
        version=0,
        voters=[
            voter(
                voter_id=1,
                voter_directory_id=ZERO_UUID,
                endpoints=[
                    voter.Endpoint(name=name, host=host, port=port)
                    for name, (host, port) in endpoints.items()
                ],
                kraft_version_feature=voter.KRaftVersionFeature(
                    min_supported_version=0, max_supported_version=1
                ),
            )
        ],
    )


def test_leader_is_reached_by_its_address_among_the_voters_in_the_log(tmp_path: Path) -> None:
    leader = new_leader("a")
    voters = one_voter(CONTROLLER=OTHER, PLAINTEXT=("nowhere", 1))
    quorum = QuorumInForce(1, voters)
    leader.snapshots[SnapshotId(2, 1)] = snapshot_of([feature("a")], 1, quorum)
    leader.start, leader.batches = 2, []
    follow(tmp_path, ModelQuorum({LEADER: leader}))
    leader.addresses = {}

    follower = follow(tmp_path, ModelQuorum({LEADER: leader, OTHER: leader}))

    assert follower.feed.quorum == quorum
    assert follower.observer.leader_address == OTHER


def test_death_at_any_change_of_a_file_costs_nothing_that_the_leader_has(tmp_path: Path) -> None:
    leader = new_leader(*"abcdef")
    leader.compact([feature(name) for name in "abcdef"], 5)
    leader.lead(2)
    leader.append(feature("g"))
    quorum = ModelQuorum({LEADER: leader})
    total = follow_and_die(tmp_path / "whole", quorum, None)
    assert total > 30
    for steps in range(total):
        directory = tmp_path / str(steps)
        follow_and_die(directory, quorum, steps)

        follower = follow(directory, quorum)

        assert sorted(follower.image.features) == list("abcdefg"), steps
        assert segments(directory) == b"".join(leader.batches), steps
        left = [path.name for path in (directory / "__cluster_metadata-0").iterdir()]
        assert [name for name in left if name.endswith((".part", ".deleted"))] == [], steps
        shutil.rmtree(directory)
