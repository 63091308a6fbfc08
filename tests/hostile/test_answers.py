"""The judges of a run: they find what is wrong, and nothing else."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from protocol.headers import request_front
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.produce import ProduceRequest
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from tests.hostile.answers import Answers, Expected
from tests.hostile.broker_log import BrokerLog
from tests.hostile.findings import Findings
from tests.hostile.frames.frame import Frame
from tests.hostile.frames.names import Identifiers
from tests.support.broker_parts.response_headers import response_front

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request, Response

TRACE = """\
2026-01-01 10:00:00,000 ERROR broker: work failed
Traceback (most recent call last):
  File "a.py", line 1, in work
ValueError: 7
"""


def frame(request: Request, number: int, *, may_be_silent: bool = False) -> Frame:
    body = request.encode(3)
    front = request_front(number, int(request.API_KEY), 3, b"fuzz", len(body))
    return Frame(number, front + body, "", "clerk", may_be_silent=may_be_silent)


def answer(response: Response, number: int) -> bytes:
    body = response.encode(3)
    return response_front(number, int(response.API_KEY), 3, len(body)) + body


class Bench:
    """One connection, and what its judge finds."""

    def __init__(self, directory: Path) -> None:
        self.findings = Findings(directory)
        self.known = Identifiers()
        self.answers = Answers(self.known, self.findings)
        self.expected = Expected(self.answers, self.findings)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def default(cls: type[Any], **values: Any) -> Any:
    """A message of which only some fields matter."""
    return cls(**values)


FIND = default(FindCoordinatorRequest, key="x")
FOUND = default(FindCoordinatorResponse, node_id=1, host="h", port=1)


def test_answers_in_order_are_counted_however_they_arrive(bench: Bench) -> None:
    bench.expected.sent([frame(FIND, 1), frame(FIND, 2)])

    for byte in answer(FOUND, 1) + answer(FOUND, 2):
        bench.expected.received(bytes([byte]))

    assert bench.findings.counts == {}
    assert bench.answers.counts.total() == 2
    assert len(bench.expected) == 0


@pytest.mark.parametrize("numbers", [(2,), (1, 1), (7,)], ids=str)
def test_an_answer_out_of_order_is_found(bench: Bench, numbers: tuple[int, ...]) -> None:
    bench.expected.sent([frame(FIND, 1), frame(FIND, 2)])

    for number in numbers:
        bench.expected.received(answer(FOUND, number))

    assert bench.findings.counts["answer out of order"] == 1


def test_an_unacknowledged_produce_request_may_have_no_answer(bench: Bench) -> None:
    produce = frame(default(ProduceRequest), 1, may_be_silent=True)
    bench.expected.sent([produce, frame(FIND, 2)])

    bench.expected.received(answer(FOUND, 2))

    assert bench.findings.counts == {}


def test_behind_a_wrong_length_anything_may_be_answered(bench: Bench) -> None:
    cut = Frame(2, struct.pack(">i", 5) + b"garbage" * 3, "")
    bench.expected.sent([frame(FIND, 1), cut])

    bench.expected.received(answer(FOUND, 1) + answer(FOUND, 99))

    assert bench.findings.counts == {}


@pytest.mark.parametrize("damage", [b"\0", b"\x05junk"])
def test_an_answer_that_cannot_be_read_is_found(bench: Bench, damage: bytes) -> None:
    bench.expected.sent([frame(FIND, 1)])
    data = answer(FOUND, 1) + damage

    bench.expected.received(struct.pack(">i", len(data) - 4) + data[4:])

    assert bench.findings.counts["unreadable answer"] == 1


def test_a_size_that_no_answer_has_is_found(bench: Bench) -> None:
    bench.expected.sent([frame(FIND, 1)])

    bench.expected.received(struct.pack(">i", -1))

    assert bench.findings.counts["answer out of order"] == 1


def test_unknown_server_errors_are_found(bench: Bench) -> None:
    bench.expected.sent([frame(FIND, 1)])

    bench.expected.received(answer(default(FindCoordinatorResponse, error_code=-1), 1))

    assert bench.findings.counts["unknown server error"] == 1


def test_producers_are_learnt_from_their_answers(bench: Bench) -> None:
    bench.expected.sent([frame(default(InitProducerIdRequest), 1)])

    given = default(InitProducerIdResponse, producer_id=5, producer_epoch=2)
    bench.expected.received(answer(given, 1))

    assert bench.known.producers == {"clerk": (5, 2)}


def test_frames_behind_one_that_was_hung_up_on_were_not_read(bench: Bench) -> None:
    bench.expected.sent([frame(FIND, number) for number in range(3)])
    bench.expected.received(answer(FOUND, 0))

    bench.expected.ended(by_peer=True)

    assert (bench.answers.refused.total(), bench.answers.unread) == (1, 1)
    assert bench.answers.given_up == 0


def test_frames_sent_last_are_saved_with_the_first_finding(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.sent(frame(FIND, 4711))

    findings.add("stall", "nothing moves")

    assert "4711" in (tmp_path / "before-stall.json").read_text()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("2026-01-01 10:00:00,000 INFO broker: served\n", 0),
        ("2026-01-01 10:00:00,000 WARNING broker.connection: closed: 'Traceback' is no key\n", 0),
        (TRACE, 1),
        ("Task exception was never retrieved\n", 1),
        ("socket.send() raised exception.\n", 1),
    ],
    ids=["info", "warning", "error", "task", "send"],
)
def test_the_broker_log_is_searched_for_errors(tmp_path: Path, text: str, kinds: int) -> None:
    findings = Findings(tmp_path)
    path = tmp_path / "broker.out"
    path.write_text(text)

    BrokerLog(path, findings).close()

    assert findings.counts.total() == kinds
