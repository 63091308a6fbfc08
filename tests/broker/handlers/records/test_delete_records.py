"""DeleteRecords: where the log starts afterwards, also after a crash, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsRequest
from storage.directory.checkpoints import decode_offsets
from tests.broker.handlers.data_broker import TOPIC, DataBroker, fill, run_data_broker

if TYPE_CHECKING:
    from pathlib import Path

ALL = -1


async def delete(broker: DataBroker, *wanted: tuple[int, int]) -> list[Any]:
    kind = DeleteRecordsRequest.Topic
    partitions = [kind.Partition(partition_index=index, offset=offset) for index, offset in wanted]
    topic = kind(name=TOPIC, partitions=partitions)
    response = await broker.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=60_000), 2)
    return list(response.topics[0].partitions)


def test_starts_move_and_are_on_the_disk_when_the_answer_comes(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=3)

        answers = await delete(broker, (0, 4), (1, ALL), (2, 0))

        assert [(one.error_code, one.low_watermark) for one in answers] == [(0, 4), (0, 9), (0, 0)]
        noted = decode_offsets((tmp_path / "log-start-offset-checkpoint").read_bytes())
        assert noted == {(TOPIC, 0): 4, (TOPIC, 1): 9}

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("index", "offset", "code"),
    [
        (0, 10, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        (7, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_refusal_moves_nothing(index: int, offset: int, code: ErrorCode, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        (answer,) = await delete(broker, (index, offset))

        assert (answer.error_code, answer.low_watermark) == (code, -1)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        assert partition.log.log_start_offset == 0

    run_data_broker(tmp_path, scenario)


def test_topic_that_is_only_compacted_refuses(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(cleanup_policy="compact")

        (answer,) = await delete(broker, (0, 0))

        assert answer.error_code == ErrorCode.POLICY_VIOLATION

    run_data_broker(tmp_path, scenario)


def test_a_start_that_could_not_be_written_is_a_storage_error(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=2)
        (tmp_path / "log-start-offset-checkpoint").mkdir()

        answers = await delete(broker, (0, 4), (1, 99))

        assert [(one.error_code, one.low_watermark) for one in answers] == [
            (ErrorCode.KAFKA_STORAGE_ERROR, -1),
            (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        ]

    run_data_broker(tmp_path, scenario)
