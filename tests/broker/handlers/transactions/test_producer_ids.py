"""InitProducerId, DescribeLogDirs and DeleteRecords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import broker.handlers.brokers.log_dirs
import broker.handlers.records.delete_records
import broker.handlers.topics.create_topics
import broker.handlers.transactions.producer_ids  # noqa: F401  (the handlers register themselves)
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsRequest
from protocol.messages.log_dirs import DescribeLogDirsRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.records.builder import NewRecord, build_batch
from storage.append.append_source import FROM_CLIENT
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new
from tests.controller.harness import NOW_MS


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        ids = []
        for _ in range(1002):
            answer = await broker.ask(request, version)
            assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
            ids.append(answer.producer_id)
        assert ids == list(range(1002))

    run_broker(tmp_path, scenario)


def test_half_an_identity_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        cases: list[tuple[dict[str, Any], ErrorCode]] = [
            ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
            ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ]
        for fields, code in cases:
            values: dict[str, Any] = {"transactional_id": None, **fields}
            request = InitProducerIdRequest(transaction_timeout_ms=1, **values)
            assert (await broker.ask(request, 4)).error_code == code

    run_broker(tmp_path, scenario)


async def fill(broker: OneBroker, topic: str, count: int, policy: str = "delete") -> None:
    await broker.ask(creation(new(topic, cleanup_policy=policy)), 7)
    partition = broker.replicas.partition(topic, 0)
    assert partition is not None
    records = [NewRecord(NOW_MS, b"k", b"v") for _ in range(count)]
    partition.append_records(memoryview(build_batch(records)), 1, FROM_CLIENT, NOW_MS)


@pytest.mark.parametrize("version", range(1, 6))
def test_log_directories_are_described(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await fill(broker, "orders", 3)
        await broker.ask(creation(new("other")), 7)
        response = await broker.ask(DescribeLogDirsRequest(topics=None), version)
        result = response.results[0]
        assert result.log_dir == str(tmp_path)
        sizes = {t.name: t.partitions[0].partition_size for t in result.topics}
        assert set(sizes) == {"orders", "other"}
        assert sizes["orders"] > sizes["other"] == 0
        if version >= 4:
            assert result.total_bytes > result.usable_bytes > 0
        wanted = DescribeLogDirsRequest.Topic(topic="other", partitions=[0, 1])
        response = await broker.ask(DescribeLogDirsRequest(topics=[wanted]), version)
        assert [t.name for t in response.results[0].topics] == ["other"]

    run_broker(tmp_path, scenario)


def test_a_relative_log_directory_is_described_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(DescribeLogDirsRequest(topics=None), 4)
        assert [result.log_dir for result in response.results] == [str(tmp_path / "logs")]

    run_broker(Path("logs"), scenario)


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_go(version: int, tmp_path: Path) -> None:
    kind = DeleteRecordsRequest.Topic

    def wanted(topic: str, offset: int, index: int = 0) -> DeleteRecordsRequest:
        partition = kind.Partition(partition_index=index, offset=offset)
        return DeleteRecordsRequest(
            topics=[kind(name=topic, partitions=[partition])], timeout_ms=1000
        )

    async def scenario(broker: OneBroker) -> None:
        await fill(broker, "orders", 10)
        await fill(broker, "compacted", 10, policy="compact")
        for topic, offset, index, code, low_watermark in [
            ("orders", 4, 0, ErrorCode.NONE, 4),
            ("orders", 2, 0, ErrorCode.NONE, 4),
            ("orders", 11, 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
            ("orders", -2, 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
            ("orders", -1, 0, ErrorCode.NONE, 10),
            ("orders", 1, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("ghost", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("compacted", 1, 0, ErrorCode.POLICY_VIOLATION, -1),
            ("__consumer_offsets", 1, 0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        ]:
            response = await broker.ask(wanted(topic, offset, index), version)
            answer = response.topics[0].partitions[0]
            assert (answer.error_code, answer.low_watermark) == (code, low_watermark)

    run_broker(tmp_path, scenario)
