"""ListGroups and DescribeGroups."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages.groups import DescribeGroupsResponse
from tests.coordinator.harness import GROUP, Harness


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.stable_group(1)
    harness.commit(1, group_id="offsets only")
    return harness


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {GROUP, "offsets only"}),
        (["stable"], [], {GROUP}),
        (["STABLE", "Empty"], [], {GROUP, "offsets only"}),
        (["Dead"], [], set()),
        ([], ["Classic"], {GROUP, "offsets only"}),
        ([], ["consumer"], set()),
    ],
)
def test_groups_are_listed_by_state_and_type_without_letter_case(
    harness: Harness, states: list[str], types: list[str], expected: set[str]
) -> None:
    assert {group.group_id for group in harness.shard.handle_list(states, types)} == expected


def test_a_listed_group_has_protocol_type_state_and_type(harness: Harness) -> None:
    by_id = {group.group_id: group for group in harness.shard.handle_list([], [])}
    stable, empty = by_id[GROUP], by_id["offsets only"]
    assert (stable.protocol_type, stable.group_state) == ("consumer", "Stable")
    assert (empty.protocol_type, empty.group_state, empty.group_type) == ("", "Empty", "classic")


def test_described_members_show_their_metadata_only_while_stable(harness: Harness) -> None:
    described = harness.shard.handle_describe(GROUP, 5)
    (member,) = described.members
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert (member.member_metadata, member.client_host) == (b"any", "/10.0.0.1")
    assert member.member_assignment == f"part of {member.member_id}".encode()
    harness.stable_group(1)
    harness.join(version=3)
    described = harness.shard.handle_describe(GROUP, 5)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {each.member_metadata for each in described.members} == {b""}


def test_unknown_group_is_dead_below_version_6_and_not_found_from_then_on(
    harness: Harness,
) -> None:
    old = harness.shard.handle_describe("nope", 5)
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    new = harness.shard.handle_describe("nope", 6)
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == "Group nope not found."


def test_an_unknown_group_of_the_longest_name_is_answered(harness: Harness) -> None:
    name = "x" * 32_767
    described = harness.shard.handle_describe(name, 6)
    answer = DescribeGroupsResponse(groups=[described]).encode(6)
    (group,) = DescribeGroupsResponse.decode(6, answer).groups
    assert (group.group_id, group.error_code) == (name, ErrorCode.GROUP_ID_NOT_FOUND)
