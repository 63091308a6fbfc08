"""Requests to other transaction coordinators: gathered while one is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.coordinators.inquiries import MOST_AT_ONCE, Inquiries, Inquiry
from protocol.errors import ErrorCode
from protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HERE, THERE = 1, 2
FLIGHTS, HOTELS = ("flights", 0), ("hotels", 3)
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
AGAIN = ErrorCode.NETWORK_EXCEPTION
Codes = dict[tuple[str, int], ErrorCode]


class Asking:
    """Inquiries, what was sent of them, and what became known."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, AddPartitionsToTxnRequest]] = []
        self.told: list[tuple[str, Codes]] = []
        self.failures: list[Exception] = []
        """Errors that the next attempts to send raise."""
        self._answered: list[Callable[[AddPartitionsToTxnResponse | None], None]] = []
        self.inquiries = Inquiries(self._send)

    def _send(self, broker_id: int, request: AddPartitionsToTxnRequest, answered: Any) -> None:
        if self.failures:
            raise self.failures.pop()
        self.sent.append((broker_id, request))
        self._answered.append(answered)

    def ask(
        self, name: str, epoch: int = 0, *, producer_id: int = 7, broker_id: int = HERE
    ) -> None:
        inquiry = Inquiry((name, producer_id, epoch), frozenset({FLIGHTS}), True)
        self.inquiries.ask(broker_id, inquiry, lambda codes: self.told.append((name, codes)))

    def names(self) -> list[list[str]]:
        """The transactional ids of each request."""
        return [[one.transactional_id for one in sent.transactions] for _, sent in self.sent]

    def answer(self, *codes: ErrorCode, error: ErrorCode = ErrorCode.NONE) -> None:
        """The request that was sent last is answered, NONE for each but the first of `codes`."""
        names = self.names()[-1]
        padded = [*codes, *[ErrorCode.NONE] * (len(names) - len(codes))]
        results = [result(name, code) for name, code in zip(names, padded, strict=True)]
        self._answered[-1](
            AddPartitionsToTxnResponse(error_code=error, results_by_transaction=results)
        )

    def fail(self) -> None:
        """The request that was sent last is not answered."""
        self._answered[-1](None)


def result(name: str, code: int) -> AddPartitionsToTxnResponse.ResultsByTransaction:
    topic, index = FLIGHTS
    one = AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
    return AddPartitionsToTxnResponse.ResultsByTransaction(
        transactional_id=name,
        topic_results=[AddPartitionsToTxnTopicResult(name=topic, results_by_partition=[one])],
    )


def test_verifications_that_arrive_during_a_request_share_the_next_one() -> None:
    asking = Asking()
    for name in "abcd":
        asking.ask(name)
    assert asking.names() == [["a"]]

    asking.answer(ErrorCode.TRANSACTION_ABORTABLE)

    assert asking.told == [("a", {FLIGHTS: ErrorCode.TRANSACTION_ABORTABLE})]
    assert asking.names() == [["a"], ["b", "c", "d"]]
    asking.answer(ErrorCode.NONE, ErrorCode.PRODUCER_FENCED)
    assert asking.told[1:] == [
        ("b", {FLIGHTS: ErrorCode.NONE}),
        ("c", {FLIGHTS: ErrorCode.PRODUCER_FENCED}),
        ("d", {FLIGHTS: ErrorCode.NONE}),
    ]
    asking.ask("e")
    assert asking.names()[2:] == [["e"]], "nothing is under way any more"


def test_a_thousand_producers_wait_for_a_few_round_trips() -> None:
    asking = Asking()
    for number in range(1000):
        asking.ask(f"p{number}")

    while len(asking.told) < 1000:
        asking.answer()

    assert len(asking.sent) == 1 + -(-999 // MOST_AT_ONCE)
    assert max(map(len, asking.names())) <= MOST_AT_ONCE
    assert [name for name, _ in asking.told] == [f"p{number}" for number in range(1000)]


def test_each_coordinator_is_asked_by_itself() -> None:
    asking = Asking()
    asking.ask("a", broker_id=HERE)
    asking.ask("b", broker_id=THERE)
    assert [broker_id for broker_id, _ in asking.sent] == [HERE, THERE]


@pytest.mark.parametrize(
    ("second", "told", "sent"),
    [
        ((5, 7), AGAIN, (5, 7)),
        ((6, 7), FENCED, (6, 7)),
        ((4, 7), FENCED, (5, 7)),
        ((0, 8), AGAIN, (0, 8)),
    ],
    ids=["same", "newer", "older", "another id"],
)
def test_a_transactional_id_waits_with_one_question(
    second: tuple[int, int], told: ErrorCode, sent: tuple[int, int]
) -> None:
    asking = Asking()
    asking.ask("other")
    asking.ask("mine", 5)

    asking.ask("mine", second[0], producer_id=second[1])

    assert asking.told == [("mine", {FLIGHTS: told})]
    asking.answer()
    ((waiting,),) = [request.transactions for _, request in asking.sent[1:]]
    assert (waiting.producer_epoch, waiting.producer_id) == sent
    asking.answer()
    assert asking.told[-1] == ("mine", {FLIGHTS: ErrorCode.NONE})


def test_a_question_that_is_under_way_is_not_replaced() -> None:
    asking = Asking()
    asking.ask("a", 5)
    asking.ask("a", 6)
    assert asking.told == []

    asking.answer(ErrorCode.PRODUCER_FENCED)
    asking.answer()

    assert [codes[FLIGHTS] for _, codes in asking.told] == [
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.NONE,
    ]


def test_a_failed_request_fails_its_verifications_and_the_next_is_sent() -> None:
    asking = Asking()
    for name in "abc":
        asking.ask(name)
    asking.fail()
    asking.ask("d")
    asking.fail()
    assert asking.names() == [["a"], ["b", "c"], ["d"]]
    assert asking.told == [(name, {FLIGHTS: AGAIN}) for name in "abc"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_top_level_error_is_returned_for_every_partition(
    error: ErrorCode, code: ErrorCode
) -> None:
    asking = Asking()
    asking.ask("a")
    asking.answer(error=error)
    assert asking.told == [("a", {FLIGHTS: code})]


def test_partitions_missing_from_an_answer_get_unknown_server_error() -> None:
    asking = Asking()
    inquiry = Inquiry(("a", 7, 0), frozenset({FLIGHTS, HOTELS}), False)
    told: list[Codes] = []
    asking.inquiries.ask(HERE, inquiry, told.append)
    (wanted,) = asking.sent[0][1].transactions
    assert not wanted.verify_only
    assert {(one.name, *one.partitions) for one in wanted.topics} == {FLIGHTS, HOTELS}

    asking._answered[0](
        AddPartitionsToTxnResponse(
            error_code=0, results_by_transaction=[result("a", 9999), result("who", 0)]
        )
    )

    assert told == [dict.fromkeys([FLIGHTS, HOTELS], ErrorCode.UNKNOWN_SERVER_ERROR)]


def test_a_producer_whose_request_fails_keeps_no_other_from_its_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: Codes) -> None:
        raise RuntimeError("the log is away")

    asking = Asking()
    asking.inquiries.ask(HERE, Inquiry(("a", 7, 0), frozenset({FLIGHTS}), True), broken)
    asking.ask("b")
    asking.answer()
    asking.answer()
    assert asking.told == [("b", {FLIGHTS: ErrorCode.NONE})]
    assert "the log is away" in caplog.text


def test_an_answer_that_cannot_be_read_is_an_error_for_its_batch_and_the_next_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asking = Asking()
    for name in "abc":
        asking.ask(name)

    unreadable = AddPartitionsToTxnResponse(error_code=0, results_by_transaction=cast("Any", [1]))
    asking._answered[0](unreadable)

    assert asking.told == [("a", {FLIGHTS: ErrorCode.UNKNOWN_SERVER_ERROR})]
    assert asking.names() == [["a"], ["b", "c"]]
    asking.answer()
    assert asking.told[1:] == [(name, {FLIGHTS: ErrorCode.NONE}) for name in "bc"]
    assert f"transaction coordinator on broker {HERE}" in caplog.text


def test_a_request_that_cannot_be_sent_fails_its_own_batch_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asking = Asking()
    asking.failures = [RuntimeError("no room"), RuntimeError("no way")]
    asking.ask("a")
    asking.ask("b")
    asking.ask("c")

    assert asking.names() == [["c"]]
    assert asking.told == [(name, {FLIGHTS: AGAIN}) for name in "ab"]
    assert "no way" in caplog.text
    assert "no room" in caplog.text
