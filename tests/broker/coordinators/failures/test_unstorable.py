"""Values too large for a group's log are refused or stored, and the group goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.coordinators.shard_runtime import ShardRuntime, ShardServices
from broker.runtime.deferred import Deferred
from coordinator.effects import ShardEffects
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.test_groups import OFFSETS_TOPIC, committed, lead_offsets_again
from tests.coordinator.harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 32_767


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**63 - 2, 2**62])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_offset_with_the_longest_retention_time_does_not_expire(
    version: int, retention_ms: int, tmp_path: Path
) -> None:
    async def commit(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        position = OffsetCommitRequest.Topic.Partition(
            partition_index=0, committed_offset=7, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequest.Topic(name="flights", partitions=[position])],
        )
        answer = await broker.ask(request, version)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    async def read(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await lead_offsets_again(broker)
        broker.clock.ms += 10**15
        await broker.groups.clean_up()
        assert await committed(broker) == 7

    run_group_broker(tmp_path, commit)
    run_group_broker(tmp_path, read)


@pytest.mark.parametrize("version", [3, 9])
def test_a_client_whose_members_id_would_be_too_long_is_refused(version: int) -> None:
    harness = Harness()
    refused = harness.join(client_id="c" * LONGEST, version=version)
    assert refused.error is ErrorCode.INVALID_REQUEST
    assert harness.shard.find(GROUP) is None


@pytest.mark.parametrize("letter", ["i", "ж"])
def test_an_instance_whose_members_id_would_be_too_long_does_not_stop_its_group(
    letter: str,
) -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    instance = letter * (LONGEST // len(letter.encode()))
    assert harness.join(instance=instance).error is ErrorCode.INVALID_REQUEST
    assert harness.heartbeat(member, 1) is ErrorCode.NONE
    assert harness.join(instance="short").is_parked


class Unwritable:
    """A format in which nothing can be written."""

    def encode_key(self, record: object, /) -> bytes:
        raise OverflowError(f"{record} is too large")

    def encode_value(self, record: object, /) -> bytes | None:
        raise AssertionError

    def decode(self, key: bytes, value: bytes | None, /) -> object | None:
        raise AssertionError

    def step_of(self, record: object, /) -> str:
        raise AssertionError


def test_records_that_cannot_be_encoded_are_refused_and_not_replayed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        partition = broker.replicas.require(OFFSETS_TOPIC, 0)
        replayed: list[object] = []
        surroundings = ShardServices(broker.clock, broker.timers, 1000)
        shard = Started(partition, surroundings, Unwritable(), replayed.append)
        shard.activate()
        answer: Deferred[ErrorCode] = Deferred()
        effects: ShardEffects[object] = ShardEffects(records=["a record"])
        effects.answer_when_committed(answer, ErrorCode.NONE, lambda code: code)

        assert not shard.run(effects)
        assert answer.value is ErrorCode.UNKNOWN_SERVER_ERROR
        assert replayed == []
        assert "records cannot be encoded" in caplog.text

    run_group_broker(tmp_path, scenario)


class Started(ShardRuntime[object]):
    """A shard of records that mean nothing."""

    def loaded(self, now_ms: int) -> ShardEffects[object]:
        return ShardEffects()
