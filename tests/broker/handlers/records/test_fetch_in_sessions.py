"""Fetch in sessions (KIP-227): only changes are sent, partitions rotate, errors are top-level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from tests.broker.handlers.data_broker import (
    BY_ID,
    TOPIC,
    DataBroker,
    answers,
    fetch_request,
    fill,
    offsets,
    records,
    run_data_broker,
    wanted,
)
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path


class Reader:
    """A client with a fetch session."""

    def __init__(self, broker: DataBroker, version: int = 12) -> None:
        self._broker = broker
        self._version = version
        self.session_id = 0
        self.epoch = 0

    async def fetch(self, *topics: FetchRequest.Topic, **fields: Any) -> list[Any]:
        values = {"session_id": self.session_id, "session_epoch": self.epoch, **fields}
        response = await self._broker.fetch(*topics, version=self._version, **values)
        assert response.error_code == ErrorCode.NONE
        self.session_id = response.session_id
        self.epoch += 1
        return answers(response)


def test_session_answers_only_changed_partitions(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=3, batches=1)
        reader = Reader(broker)

        opened = await reader.fetch(*(wanted(index=index, offset=3) for index in range(3)))
        assert [(one.partition_index, one.high_watermark) for one in opened] == [
            (0, 3),
            (1, 3),
            (2, 3),
        ]
        assert reader.session_id > 0
        assert await reader.fetch() == []

        await broker.produce({(TOPIC, 1): records(3)})
        (news,) = await reader.fetch()
        assert (news.partition_index, offsets(news)) == (1, [3, 4, 5])
        assert await reader.fetch(wanted(index=1, offset=6)) == []

        partition = broker.replicas.partition(TOPIC, 2)
        assert partition is not None
        partition.log.advance_log_start_offset(2)
        (news,) = await reader.fetch()
        assert (news.partition_index, news.log_start_offset, news.records) == (2, 2, b"")

    run_data_broker(tmp_path, scenario)


def test_session_repeats_an_error_until_it_is_resolved(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=1)
        reader = Reader(broker)
        await reader.fetch(wanted(offset=3))

        for _ in range(2):
            (refused,) = await reader.fetch(wanted(offset=99))
            assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        (well,) = await reader.fetch(wanted(offset=3))

        assert (well.error_code, well.high_watermark) == (ErrorCode.NONE, 3)

    run_data_broker(tmp_path, scenario)


def test_partitions_of_a_session_take_turns(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=3)
        reader = Reader(broker)
        served = []

        for turn in range(6):
            topics = [] if turn else [wanted(index=index) for index in range(3)]
            found = await reader.fetch(*topics, max_bytes=1)
            served += [one.partition_index for one in found if one.records]

        assert served == [0, 1, 2, 0, 1, 2]

    run_data_broker(tmp_path, scenario)


def test_forgotten_partition_is_served_no_more(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=2, batches=1)
        reader = Reader(broker)
        await reader.fetch(wanted(index=0), wanted(index=1))
        forgotten = FetchRequest.ForgottenTopicsData(topic=TOPIC, partitions=[0])

        (left,) = await reader.fetch(forgotten_topics_data=[forgotten])
        assert left.partition_index == 1
        forgotten = FetchRequest.ForgottenTopicsData(topic=TOPIC, partitions=[1])
        assert await reader.fetch(forgotten_topics_data=[forgotten]) == []

        assert reader.session_id == 0, "an empty session is none"

    run_data_broker(tmp_path, scenario)


def test_session_by_id_remembers_the_name_of_a_deleted_topic(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=1)
        deleted = broker.metadata.topic_id(TOPIC)
        reader, other = Reader(broker, BY_ID), Reader(broker, BY_ID)
        for each in (reader, other):
            (found,) = await each.fetch(wanted(deleted))
            assert offsets(found) == [0, 1, 2]

        await broker.delete_topic()
        for listed in ([], [wanted(deleted)], []):
            assert await codes(reader, *listed) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

        await fill(broker, batches=1)
        for listed in ([], [wanted(deleted)], []):
            assert await codes(reader, *listed) == [ErrorCode.INCONSISTENT_TOPIC_ID]
        made_again = broker.metadata.topic_id(TOPIC)
        assert await codes(reader, wanted(made_again)) == [
            ErrorCode.INCONSISTENT_TOPIC_ID,
            ErrorCode.NONE,
        ]
        forgotten = FetchRequest.ForgottenTopicsData(topic_id=deleted, partitions=[0])
        assert await codes(reader, forgotten_topics_data=[forgotten]) == [ErrorCode.NONE]
        assert await codes(other) == [ErrorCode.INCONSISTENT_TOPIC_ID]

    run_data_broker(tmp_path, scenario)


def test_id_that_a_reader_never_saw_with_a_name_is_unknown(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=1)
        deleted = broker.metadata.topic_id(TOPIC)
        await broker.delete_topic()

        reader = Reader(broker, BY_ID)
        for listed in ([wanted(deleted)], []):
            assert await codes(reader, *listed) == [ErrorCode.UNKNOWN_TOPIC_ID]
        await fill(broker, batches=1)
        assert await codes(reader) == [ErrorCode.UNKNOWN_TOPIC_ID]
        (alone,) = answers(await broker.fetch(wanted(deleted), version=BY_ID))
        assert alone.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run_data_broker(tmp_path, scenario)


async def codes(reader: Reader, *topics: FetchRequest.Topic, **fields: Any) -> list[ErrorCode]:
    return [ErrorCode(one.error_code) for one in await reader.fetch(*topics, **fields)]


def test_wrong_sessions_are_errors_of_the_whole_request(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        reader = Reader(broker)
        await reader.fetch(wanted())

        for version, session_id, epoch, code in [
            (12, 9999, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (12, reader.session_id, 7, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (13, reader.session_id, 1, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ]:
            response = await broker.fetch(
                version=version, session_id=session_id, session_epoch=epoch
            )
            assert (response.error_code, response.responses) == (code, [])

    run_data_broker(tmp_path, scenario)


def test_without_room_for_a_session_the_answer_is_a_full_one(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        response = await broker.fetch(wanted(), session_epoch=0)

        assert response.session_id == 0
        assert len(offsets(answers(response)[0])) == 9

    run_data_broker(tmp_path, scenario, max_incremental_fetch_session_cache_slots=0)


def test_an_answer_that_comes_after_the_sessions_next_request_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=1)
        reader = Reader(broker)
        await reader.fetch(wanted(offset=3))
        late = broker.call(
            fetch_request(
                max_wait_ms=10_000, session_id=reader.session_id, session_epoch=reader.epoch
            ),
            12,
        )
        reader.epoch += 1
        assert await reader.fetch() == []

        await broker.produce({(TOPIC, 0): records(3)})
        refused = await arrival(late)

        assert refused.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert refused.session_id == reader.session_id
        assert refused.responses == []
        (news,) = await reader.fetch()
        assert (offsets(news), news.high_watermark) == ([3, 4, 5], 6)

    run_data_broker(tmp_path, scenario)
