"""Inquiries of partition leaders to transaction coordinators, batched over many producers.

At most one AddPartitionsToTxn is in flight to each coordinator. Inquiries that arrive in the
meantime are collected and sent with the next one: if a thousand producers begin transactions at
about the same time, the last waits for two round trips, not for a thousand.

    a              a producer's first question: sent
      b c d        three others: wait
    a'             the first producer again, while `a` is under way: waits with them
         <- a
    b c d a'       sent together

At most one inquiry of a transactional id waits. A second one replaces it:

    the second has    the first is answered       why
    a higher epoch    INVALID_PRODUCER_EPOCH      another producer has taken over
    the same epoch    NETWORK_EXCEPTION           the client sends again; the waiting one retries
    a lower epoch     stays, and the second       the first has taken over
                      is INVALID_PRODUCER_EPOCH
    another id        NETWORK_EXCEPTION           epochs of two producer ids are not comparable

Source: `AddPartitionsToTxnManager` in Apache Kafka, which compares epochs in the last case as well.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ErrorCode
from protocol.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.transactions.transaction import TopicPartition
    from protocol.messages.transactions import AddPartitionsToTxnResponse

    Codes = dict[TopicPartition, ErrorCode]
    Answered = Callable[[AddPartitionsToTxnResponse | None], None]
    Send = Callable[[int, AddPartitionsToTxnRequest, Answered], None]

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 200
"""Transactions in one request. Fixed: the coordinator handles them all in one turn of its loop."""


class Inquiry(NamedTuple):
    """Request to verify the partitions a transaction writes to, or to add them to it."""

    producer: tuple[str, int, int]
    """Transactional id, producer id, epoch."""
    partitions: frozenset[TopicPartition]
    verify_only: bool
    """True to verify that they are in it, instead of adding them."""

    def refused(self, code: ErrorCode) -> Codes:
        """The same error for all partitions."""
        return dict.fromkeys(self.partitions, code)


class _Asked(NamedTuple):
    inquiry: Inquiry
    callback: Callable[[Codes], None]


class Inquiries:
    """The inquiries to all other brokers."""

    def __init__(self, send: Send) -> None:
        """`send` sends to a broker and calls back once, with None if there is no response."""
        self._send = send
        self._waiting: dict[int, dict[str, _Asked]] = {}
        """By broker and transactional id. A broker with a request in flight has an entry."""

    def ask(self, broker_id: int, inquiry: Inquiry, callback: Callable[[Codes], None]) -> None:
        """Ask a coordinator; `callback` is called once, with its error code for each partition.

        An exception from `callback` is only logged: it has to answer its producer itself.
        """
        waiting = self._waiting.get(broker_id)
        is_under_way = waiting is not None
        if waiting is None:
            waiting = self._waiting[broker_id] = {}
        transactional_id = inquiry.producer[0]
        former = waiting.get(transactional_id)
        if former is not None and _is_older(inquiry, former.inquiry):
            callback(inquiry.refused(ErrorCode.INVALID_PRODUCER_EPOCH))
            return
        waiting[transactional_id] = _Asked(inquiry, callback)
        if former is not None:
            is_fenced = _is_older(former.inquiry, inquiry)
            code = ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else ErrorCode.NETWORK_EXCEPTION
            _answer(former, former.inquiry.refused(code))
        if not is_under_way:
            self._send_next(broker_id)

    def _send_next(self, broker_id: int) -> None:
        waiting = self._waiting[broker_id]
        batch = {name: waiting.pop(name) for name in list(islice(waiting, MOST_AT_ONCE))}
        if not batch:
            del self._waiting[broker_id]
            return

        def answered(response: AddPartitionsToTxnResponse | None) -> None:
            told = _told_or_refused(broker_id, batch, response)
            for name, asked in batch.items():
                _answer(asked, told[name])
            self._send_next(broker_id)

        transactions = [_transaction(asked.inquiry) for asked in batch.values()]
        try:
            self._send(broker_id, AddPartitionsToTxnRequest(transactions=transactions), answered)
        except Exception:  # the border: this batch gets an error, the next is sent
            logger.exception("transaction coordinator on broker %d cannot be asked", broker_id)
            answered(None)


def _is_older(one: Inquiry, other: Inquiry) -> bool:
    """Return whether the producer of `other` is a later instance of the same; False if unknown."""
    _, producer_id, epoch = one.producer
    _, other_id, other_epoch = other.producer
    return producer_id == other_id and epoch < other_epoch


def _answer(asked: _Asked, codes: Codes) -> None:
    """Answer one producer's request; an error that this raises is that request's alone."""
    try:
        asked.callback(codes)
    except Exception:  # the border: the other producers of the batch get their answers as well
        logger.exception("verification of %s failed", asked.inquiry.producer[0])


def _told_or_refused(
    broker_id: int, batch: dict[str, _Asked], response: AddPartitionsToTxnResponse | None
) -> dict[str, Codes]:
    try:
        return _told(batch, response)
    except Exception:  # the border: an unforeseen answer is an error of its batch
        logger.exception("answer of transaction coordinator on broker %d failed", broker_id)
        return _all_refused(batch, ErrorCode.UNKNOWN_SERVER_ERROR)


def _all_refused(batch: dict[str, _Asked], code: ErrorCode) -> dict[str, Codes]:
    return {name: asked.inquiry.refused(code) for name, asked in batch.items()}


def _told(
    batch: dict[str, _Asked], response: AddPartitionsToTxnResponse | None
) -> dict[str, Codes]:
    """The codes of each transaction; UNKNOWN_SERVER_ERROR for one that the response lacks."""
    if response is None or response.error_code:
        code = ErrorCode.NETWORK_EXCEPTION if response is None else ErrorCode(response.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            code = ErrorCode.INVALID_TXN_STATE  # it is the broker that may not ask
        return _all_refused(batch, code)
    told = _all_refused(batch, ErrorCode.UNKNOWN_SERVER_ERROR)
    for result in response.results_by_transaction:
        codes = told.get(result.transactional_id, {})
        for topic in result.topic_results:
            for one in topic.results_by_partition:
                if (topic.name, one.partition_index) in codes:
                    codes[topic.name, one.partition_index] = ErrorCode(one.partition_error_code)
    return told


def _transaction(inquiry: Inquiry) -> AddPartitionsToTxnRequest.Transaction:
    transactional_id, producer_id, producer_epoch = inquiry.producer
    by_topic: dict[str, list[int]] = {}
    for topic, index in inquiry.partitions:
        by_topic.setdefault(topic, []).append(index)
    return AddPartitionsToTxnRequest.Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=inquiry.verify_only,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in by_topic.items()
        ],
    )
