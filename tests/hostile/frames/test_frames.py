"""The programme of frames: the same for a seed, about every request, and kept from lawful harm."""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from broker.requests.api_table import ROUTES
from protocol.api_keys import ApiKey
from protocol.headers import parse_request_header, request_front
from protocol.messages.configs import IncrementalAlterConfigsRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.hostile.frames import names
from tests.hostile.frames.blocks import FRAMES, Manner, blocks
from tests.hostile.frames.draw import Draw
from tests.hostile.frames.frame import SIZE_BYTES, make_frame
from tests.hostile.frames.lawful_harm import harm_of
from tests.hostile.frames.names import Identifiers
from tests.hostile.frames.requests import PLACEHOLDER, build, declared, served, spliced

if TYPE_CHECKING:
    from protocol.schema import Request

SEED = 7
COUNT = 600


def acquainted() -> Identifiers:
    """Return the identifiers that a run knows after a while."""
    known = Identifiers()
    for number, topic in enumerate(names.TOPICS):
        known.note_topic(topic, UUID(int=number + 1))
    for number, group in enumerate(names.GROUPS):
        known.note_member(group, f"member-{number}", number)
    for number, transaction in enumerate(names.TRANSACTIONS):
        known.note_producer(transaction, number, 0)
    known.sessions.append(77)
    return known


def command(request: Request, version: int) -> str:
    """Return the reason why a request would not be sent."""
    body = request.encode(version)
    front = request_front(1, int(request.API_KEY), version, b"fuzz", len(body))
    return harm_of(front[SIZE_BYTES:] + body)


def test_a_seed_and_a_number_make_the_same_frame_each_time() -> None:
    first = [make_frame(SEED, number, Identifiers()).data for number in range(COUNT)]

    assert first == [make_frame(SEED, number, Identifiers()).data for number in range(COUNT)]
    assert first != [make_frame(SEED + 1, number, Identifiers()).data for number in range(COUNT)]


def test_identifiers_change_nothing_else_in_a_frame() -> None:
    known = acquainted()
    for number in range(COUNT):
        before, after = (make_frame(SEED, number, one) for one in (Identifiers(), known))

        assert (before.name, before.subject) == (after.name, after.subject)


def test_frames_are_about_every_request_that_is_served() -> None:
    frames = [make_frame(SEED, number, Identifiers()) for number in range(3 * COUNT)]

    sound = {frame.api_key for frame in frames if frame.is_whole and not frame.is_damaged}
    damaged = {frame.name.partition(" ")[0] for frame in frames if frame.is_damaged}
    assert sound >= set(ROUTES)
    assert damaged >= {route.request.__name__ for route in ROUTES.values()}


@pytest.mark.parametrize("seed", range(5))
def test_plausible_requests_can_be_decoded_in_every_version(seed: int) -> None:
    for request, version in {*declared(), *(one for versions in served() for one in versions)}:
        built = build(request, version, Draw(Random(f"{seed}/{request}/{version}"), acquainted()))

        assert request.decode(version, built.encode(version)) is not None


@pytest.mark.parametrize(("version", "length"), [(1, b"\0\x05"), (9, b"\x06")])
def test_a_text_takes_the_place_of_its_mark_with_its_length(version: int, length: bytes) -> None:
    topic = ListOffsetsRequest.Topic(name=PLACEHOLDER, partitions=[])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    is_flexible = version in ListOffsetsRequest.FLEXIBLE

    changed = spliced(request.encode(version), b"hello", is_flexible=is_flexible)

    assert length + b"hello" in changed
    assert ListOffsetsRequest.decode(version, changed).topics[0].name == "hello"


def test_blocks_hold_each_frame_of_a_range_once() -> None:
    numbers = [n for block in blocks(SEED, range(10, 100)) for n in block.numbers]

    assert numbers == list(range(10, 100))


def test_only_the_last_frame_of_a_pipeline_may_be_damaged() -> None:
    pipelines = [
        block for block in blocks(SEED, range(FRAMES * 60)) if block.manner is Manner.PIPELINE
    ]
    assert pipelines
    for block in pipelines:
        frames = [frame for run in block.runs(Identifiers()) for frame in run if not frame.harm]
        assert not any(frame.is_damaged for frame in frames[:-1])


def test_headers_of_sound_frames_say_what_they_hold() -> None:
    for number in range(COUNT):
        frame = make_frame(SEED, number, Identifiers())
        if frame.is_damaged:
            continue
        header, _ = parse_request_header(frame.data[SIZE_BYTES:])
        assert (header.api_key, header.api_version) == (frame.api_key, frame.version)
        assert header.correlation_id == number
        assert struct.unpack_from(">i", frame.data) == (len(frame.data) - SIZE_BYTES,)


def _deletion(topic: str) -> Any:
    return DeleteTopicsRequest(topic_names=[topic], timeout_ms=1)


def _increment(kind: int, name: str, key: str) -> IncrementalAlterConfigsRequest:
    config = IncrementalAlterConfigsRequest.Resource.Config(name=key, config_operation=0, value="1")
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


def _creation(partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic(
        name="fuzz", num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], validate_only=False)


@pytest.mark.parametrize(
    ("request_", "version", "is_harm"),
    [
        (_deletion("__consumer_offsets"), 3, True),
        (_deletion(names.TOPICS[0]), 3, False),
        (_increment(4, "0", "message.max.bytes"), 1, True),
        (_increment(4, "0", "no.such.key"), 1, False),
        (_increment(2, "__transaction_state", "retention.ms"), 1, True),
        (_increment(2, names.TOPICS[0], "retention.ms"), 1, False),
        (_creation(5000), 5, True),
        (_creation(2**31 - 1), 5, False),
        (_creation(3), 5, False),
    ],
    ids=str,
)
def test_commands_that_must_be_obeyed_are_not_sent(
    request_: Request, version: int, is_harm: bool
) -> None:
    assert bool(command(request_, version)) is is_harm


def test_undecodable_frames_are_harmless() -> None:
    body = _deletion("__consumer_offsets").encode(3)
    front = request_front(1, int(ApiKey.DELETE_TOPICS), 3, b"fuzz", len(body))

    assert harm_of(front[SIZE_BYTES:] + body[:-6]) == ""
