"""Answers to hostile frames: whole, in order, and readable; and what is learnt from them."""

from __future__ import annotations

import struct
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import parse_request_header, response_header_bytes
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.consumer_groups import ConsumerGroupHeartbeatResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.group_membership import JoinGroupResponse
from protocol.messages.log_dirs import DescribeLogDirsResponse
from protocol.messages.metadata import MetadataResponse
from protocol.messages.producer_ids import InitProducerIdResponse
from protocol.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchResponse
from protocol.messages.share_groups import ShareGroupHeartbeatResponse
from protocol.messages.streams_groups import StreamsGroupHeartbeatResponse
from protocol.messages.telemetry import GetTelemetrySubscriptionsResponse
from protocol.messages.topics import CreateTopicsResponse
from protocol.wire import DecodeError
from tests.hostile.frames.requests import declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from protocol.schema import Response
    from tests.hostile.findings import Findings
    from tests.hostile.frames.frame import Frame
    from tests.hostile.frames.names import Identifiers

LARGEST_ANSWER: Final = 200_000_000
ALWAYS_DECODED_BYTES: Final = 20_000
"""Of longer answers, one in SAMPLE is decoded."""
SAMPLE: Final = 8
SIZE_BYTES: Final = 4
LONGEST_TEXT: Final = 32_767

_INT32 = struct.Struct(">i")
_REQUESTS = {int(request.API_KEY): request for request, _ in declared()}
_RESPONSES = {int(request.API_KEY): request.RESPONSE for request, _ in declared()}


class Answers:
    """The answers of all connections: judged, counted and learnt from."""

    def __init__(self, known: Identifiers, findings: Findings) -> None:
        self._known = known
        self._findings = findings
        self.counts: Counter[tuple[int, int]] = Counter()
        """By API key and version."""
        self.refused: Counter[tuple[int, int]] = Counter()
        """Frames for which the broker hung up, by API key and version."""
        self.unread = 0
        """Frames behind one of those."""
        self.given_up = 0
        """Frames that were not answered in time, or whose connection was not kept open."""

    def judge(self, content: bytes, frame: Frame) -> None:
        """Take an answer, without its length, to a frame."""
        key, version = frame.api_key, frame.version
        self.counts[key, version] += 1
        if len(content) > ALWAYS_DECODED_BYTES and frame.number % SAMPLE:
            return
        try:
            answer = _decoded(content, key, version)
        except (DecodeError, ValueError) as error:
            self._findings.add("unreadable answer", f"{error}: {content[:200].hex()}", frame)
            return
        code = getattr(answer, "error_code", 0)
        if code == ErrorCode.UNKNOWN_SERVER_ERROR and type(answer) not in _LIKE_APACHE:
            self._findings.add("unknown server error", repr(answer)[:500], frame)
        learn = _LESSONS.get(type(answer))
        if learn is not None:
            learn(self._known, frame, answer)


def _decoded(content: bytes, key: int, version: int) -> Response:
    response = _RESPONSES[key]
    if key == ApiKey.API_VERSIONS and version not in response.VERSIONS:
        return ApiVersionsResponse.decode(0, content, SIZE_BYTES)
    return response.decode(version, content, response_header_bytes(key, version))


class Expected:
    """The frames of one connection that are not answered yet, in order."""

    def __init__(self, answers: Answers, findings: Findings) -> None:
        self._answers = answers
        self._findings = findings
        self._frames: deque[Frame] = deque()
        self._buffer = bytearray()
        self._is_loose = False
        """A length was wrong: the bytes behind it may be taken for anything."""
        self.is_wrong = False
        """A response arrived that answers no request."""

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def has_started(self) -> bool:
        """Return whether an incomplete answer has arrived."""
        return bool(self._buffer)

    def sent(self, frames: Iterable[Frame]) -> None:
        """These frames were sent."""
        for frame in frames:
            if frame.is_whole and not self._is_loose:
                self._frames.append(frame)
            else:
                self._is_loose = True

    def received(self, data: bytes) -> None:
        """Bytes came."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= SIZE_BYTES and not self.is_wrong:
            (size,) = _INT32.unpack_from(self._buffer, start)
            if not SIZE_BYTES <= size <= LARGEST_ANSWER:
                self._refuse(f"an answer of {size} bytes")
                break
            stop = start + SIZE_BYTES + size
            if stop > len(self._buffer):
                break
            self._take(bytes(self._buffer[start + SIZE_BYTES : stop]))
            start = stop
        del self._buffer[:start]

    def ended(self, *, by_peer: bool) -> None:
        """The connection is over."""
        if not by_peer:
            self._answers.given_up += len(self._frames)
        elif self._frames:
            first = self._frames[0]
            self._answers.refused[first.api_key, first.version] += 1
            self._answers.unread += len(self._frames) - 1
        self._frames.clear()

    def _take(self, content: bytes) -> None:
        (correlation_id,) = _INT32.unpack_from(content)
        while self._frames:
            frame = self._frames.popleft()
            if frame.correlation_id == correlation_id:
                self._answers.judge(content, frame)
                return
            if not frame.may_be_silent and not self._is_loose:
                self._refuse(f"correlation id {correlation_id} came instead", frame)
                return
        if not self._is_loose:
            self._refuse(f"nobody asked with correlation id {correlation_id}")

    def _refuse(self, text: str, frame: Frame | None = None) -> None:
        self.is_wrong = True
        self._findings.add("answer out of order", text, frame)


def _learn_topics(known: Identifiers, _: Frame, answer: Any) -> None:
    for topic in answer.topics:
        if topic.name:
            known.note_topic(topic.name, topic.topic_id)


def _learn_member(known: Identifiers, frame: Frame, answer: Any) -> None:
    known.note_member(frame.subject, answer.member_id, answer.generation_id)


def _learn_producer(known: Identifiers, frame: Frame, answer: Any) -> None:
    known.note_producer(frame.subject, answer.producer_id, answer.producer_epoch)


def _learn_epoch(known: Identifiers, frame: Frame, answer: Any) -> None:
    asked = _asked(frame)
    if asked is not None and not answer.error_code:
        known.epochs[asked.group_id, asked.member_id] = answer.member_epoch


def _learn_share_session(known: Identifiers, frame: Frame, answer: Any) -> None:
    asked = _asked(frame)
    if asked is None:
        return
    key = asked.group_id, asked.member_id
    if answer.error_code or asked.share_session_epoch == -1:
        known.share_epochs.pop(key, None)
        known.acquired.pop(key, None)
        return
    known.share_epochs[key] = asked.share_session_epoch + 1
    for topic in answer.responses:
        for each in topic.partitions:
            for one in getattr(each, "acquired_records", ()):
                place = topic.topic_id, each.partition_index
                known.acquired[key] = *place, one.first_offset, one.last_offset


def _learn_subscription(known: Identifiers, _: Frame, answer: Any) -> None:
    if not answer.error_code:
        known.subscription = answer.client_instance_id, answer.subscription_id


def _learn_log_directory(known: Identifiers, _: Frame, answer: Any) -> None:
    for result in answer.results:
        known.log_directory = result.log_dir


def _asked(frame: Frame) -> Any:
    """The request of a frame, if it can be read."""
    content = frame.data[SIZE_BYTES:]
    try:
        header, position = parse_request_header(content)
        request, _ = _REQUESTS[header.api_key].decode_from(header.api_version, content, position)
    except (DecodeError, ValueError, KeyError):
        return None
    return request


def _learn_session(known: Identifiers, _: Frame, answer: Any) -> None:
    if answer.session_id > 0:
        known.sessions.append(answer.session_id)


_LIKE_APACHE: Final = {JoinGroupResponse, StreamsGroupHeartbeatResponse}
"""Have Apache Kafka's UNKNOWN_SERVER_ERROR: for metadata of a classic member that is no
subscription, in a consumer group, and for a streams group without a topology."""

_LESSONS: dict[type, Callable[[Identifiers, Frame, Any], None]] = {
    MetadataResponse: _learn_topics,
    CreateTopicsResponse: _learn_topics,
    JoinGroupResponse: _learn_member,
    InitProducerIdResponse: _learn_producer,
    FetchResponse: _learn_session,
    ConsumerGroupHeartbeatResponse: _learn_epoch,
    ShareGroupHeartbeatResponse: _learn_epoch,
    StreamsGroupHeartbeatResponse: _learn_epoch,
    ShareFetchResponse: _learn_share_session,
    ShareAcknowledgeResponse: _learn_share_session,
    GetTelemetrySubscriptionsResponse: _learn_subscription,
    DescribeLogDirsResponse: _learn_log_directory,
}
