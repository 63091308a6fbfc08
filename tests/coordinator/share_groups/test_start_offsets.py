"""Start offsets that an administrator sets or deletes, and groups that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from tests.coordinator.harness import GROUP
from tests.coordinator.share_groups.share_harness import Shares, share_harness

if TYPE_CHECKING:
    from uuid import UUID


def with_state() -> Shares:
    """A group without members that has read two topics."""
    shares = share_harness(t=2, u=1)
    shares.beat("a", "t", "u")
    shares.settle("a")
    shares.leave("a")
    return shares


def topic_id_of(shares: Shares) -> UUID:
    view = shares.harness.topics.find("t")
    assert view is not None
    return view.topic_id


def test_start_offsets_are_set_in_the_groups_epoch() -> None:
    shares = with_state()
    shard, topic_id = shares.harness.shard.shares, topic_id_of(shares)
    wanted, records = shard.handle_alter(GROUP, {(topic_id, 1): 7})
    shares.harness.append(records)
    assert wanted.state_epoch == shares.group.epoch
    assert wanted.start_offsets == {(topic_id, 1): 7}
    assert shares.group.states.initialising[topic_id].partitions == {1}
    shares.harness.append(shard.handle_initialised(GROUP, [(topic_id, 1)], []))
    assert shares.group.states.initialising == {}
    assert shares.group.states.initialised[topic_id].partitions == {0, 1}


def test_altering_start_offsets_creates_an_empty_group() -> None:
    shares = share_harness(t=1)
    topic_id = topic_id_of(shares)
    _, records = shares.harness.shard.shares.handle_alter(GROUP, {(topic_id, 0): 7})
    shares.harness.append(records)
    assert shares.group.state.value == "Empty"


def test_a_joining_member_does_not_reset_start_offsets() -> None:
    shares = share_harness(t=2)
    harness, topic_id = shares.harness, topic_id_of(shares)
    shard = harness.shard.shares
    _, records = shard.handle_alter(GROUP, {(topic_id, 0): 7})
    harness.append(records)
    shares.beat("a", "t")
    [wanted] = shares.asked
    assert wanted.start_offsets == {(topic_id, 1): -1}


def test_start_offsets_of_a_non_empty_group_cannot_be_changed() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shard, topic_id = shares.harness.shard.shares, topic_id_of(shares)
    for request in (
        lambda: shard.handle_alter(GROUP, {(topic_id, 0): 7}),
        lambda: shard.handle_delete_topics(GROUP, ["t"]),
        lambda: shard.handle_delete_all(GROUP),
    ):
        with pytest.raises(ApiError) as refused:
            request()
        assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(ApiError) as unknown:
        shard.handle_delete_topics("nobody", ["t"])
    assert unknown.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_topics_are_forgotten_and_may_be_forgotten_again() -> None:
    shares = with_state()
    shard, topic_id = shares.harness.shard.shares, topic_id_of(shares)
    for _ in range(2):
        begun = shard.handle_delete_topics(GROUP, ["t", "nobodys"])
        assert begun.places == [(topic_id, 0), (topic_id, 1)]
        assert begun.refused.keys() == {"nobodys"}
        shares.harness.append(begun.records)
        shares.harness = shares.harness.restarted()
        shard = shares.harness.shard.shares
    assert shares.group.states.deleting == {topic_id: "t"}
    shares.harness.append(shard.handle_forgotten(GROUP, [topic_id]))
    assert shares.group.states.deleting == {}
    assert shard.handle_delete_topics(GROUP, ["t"]).refused["t"].message == (
        "There is no offset information to delete."
    )


def test_a_group_is_deleted_with_all_its_state() -> None:
    shares = with_state()
    shard = shares.harness.shard
    begun = shard.shares.handle_delete_all(GROUP)
    assert len(begun.places) == 3
    shares.harness.append(begun.records)
    assert len(shard.shares.handle_delete_all(GROUP).places) == 3, "it may be asked for again"
    code, tombstones = shard.handle_delete_group(GROUP)
    assert code is ErrorCode.NONE
    shares.harness.append(tombstones)
    assert GROUP not in shard.shares
    shares.harness = shares.harness.restarted()
    assert GROUP not in shares.harness.shard.shares


def test_initialisation_waits_for_a_state_deletion_under_way() -> None:
    shares = with_state()
    shard = shares.harness.shard.shares
    with shard.forgetting(GROUP):
        with shard.forgetting(GROUP):  # the client has asked again
            shares.harness.append(shard.handle_delete_all(GROUP).records)
        shares.beat("b", "t")
        shares.beat("b")
        assert shares.asked == []

    shares.beat("b")
    [wanted] = shares.asked
    assert len(wanted.start_offsets) == 2
    shares.settle("b")
    assert shares.told["b"] == {"t": [0, 1]}


def test_deleted_topics_leave_the_group() -> None:
    shares = with_state()
    shard, topic_id = shares.harness.shard.shares, topic_id_of(shares)
    shares.harness.topics.remove("t")
    for records in shard.handle_topics_deleted({topic_id}):
        shares.harness.append(records)
    assert [each.name for each in shares.group.states.initialised.values()] == ["u"]
    assert list(shard.handle_topics_deleted({topic_id})) == [[]]
