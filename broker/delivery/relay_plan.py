"""Next step with the dead letters of one partition, decided and not executed.

    no producer id                     OBTAIN  an id, then note it
    dead letters, nothing under way    NOTE    in the log the last one to send
    noted, and that is committed       SEND    them
    arrived                            NOTE    that, and the next ones to send, if there are any
    gone from the log meanwhile        OBTAIN  another id, once there are more
    refused as too large               NOTE    half of them to send, and fewer from now on
    the answer is an unknown producer
    id, or an out-of-order sequence    OBTAIN  another id: those under way may arrive twice
    nothing to do                      REST

One batch is under way at a time. Its contents follow from the log, so that another leader sends the
same (`protocol.delays.relay_batch`). Later dead letters wait in a queue, mostly in files.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final

from protocol.delays.relay_batch import NOTHING, Position, Relay
from protocol.errors import ErrorCode
from protocol.records.batch import SEQUENCE_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.delivery.waiting_queue import WaitingQueue

MOST_RECORDS: Final = 50
"""Of one batch. Fixed: dead letters are few, and a batch of them is made on the event loop."""

NO_PRODUCER: Final = Relay(-1, -1, 0, NOTHING, NOTHING)

_LOST_PRODUCER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_ARRIVED: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


class Step(Enum):
    """Next step."""

    REST = "rest"
    OBTAIN = "obtain"
    NOTE = "note"
    SEND = "send"


class RelayPlan:
    """State of one partition's relay, as in the log, and its queue."""

    def __init__(self, last: Relay | None, queue: WaitingQueue[Position]) -> None:
        """`last` is the last relay batch in the log, if there is one.

        It need not be committed: noting it again does no harm. The plan takes over the empty
        `queue`.
        """
        self.noted = last or NO_PRODUCER
        self._dead: deque[Position] = deque()
        """Contents of the next batch; the rest is in the queue."""
        self._behind = queue
        self._most = MOST_RECORDS
        """Of one batch; fewer than MOST_RECORDS once one was refused as too large."""
        self._last = NOTHING
        self._least_offset = 0
        self._is_to_note = last is not None and last.arrived != last.sent
        self._needs_producer = last is None

    def __len__(self) -> int:
        """Dead letters that have not arrived."""
        return len(self._dead) + len(self._behind)

    @property
    def least_offset(self) -> int | None:
        """Lower bound of the offsets that have not arrived; None if all have."""
        return self._least_offset if len(self) else None

    @property
    def is_producer_lost(self) -> bool:
        """True if another producer id is needed."""
        return self._needs_producer

    @property
    def is_full(self) -> bool:
        """True if a `spill` is due before another is added."""
        return self._behind.is_full

    def spill(self) -> Iterator[None]:
        """See `WaitingQueue.spill`."""
        return self._behind.spill()

    def add(self, position: Position) -> None:
        """A record has become a dead letter; in order. One that has arrived is passed over."""
        if position > self.noted.arrived:
            assert position > self._last, "dead letters come in order"
            self._last = position
            if not len(self) or position.offset < self._least_offset:
                # In a transaction, later ones may have lower offsets.
                self._least_offset = position.offset
            self._behind.push(position)

    def close(self) -> None:
        """Remove the files of the queue."""
        self._behind.close()

    def next(self) -> Step:
        """Next step. OSError if the queue cannot be read, which changes nothing."""
        self._fetch()
        is_under_way = self.noted.sent != self.noted.arrived
        if is_under_way and not self.to_send():
            # The dead letters under way are gone from the log. Their number is unknown, and so is
            # the next sequence number: with this one, the next batch could pass for a duplicate.
            self.noted = self.noted._replace(arrived=self.noted.sent)
            self._needs_producer = True
        if self._needs_producer:
            return Step.OBTAIN if self._dead else Step.REST
        if self._is_to_note or (self._dead and not is_under_way):
            return Step.NOTE
        return Step.SEND if is_under_way else Step.REST

    def obtained(self, producer_id: int) -> None:
        """A producer id was found for it; its sequence begins at zero."""
        arrived, sent = self.noted[3:]
        self.noted = Relay(producer_id, 0, 0, arrived, sent)
        self._needs_producer = False
        self._is_to_note = True

    def to_choose_from(self) -> Sequence[Position]:
        """After `next`: candidates for the batch to note, in order."""
        is_under_way = self.noted.sent != self.noted.arrived
        return () if is_under_way else tuple(self._dead)[: self._most]

    def to_note(self, count: int) -> Relay:
        """Relay to append to the log; call `noted_in_log` when it is committed.

        The batch is the first `count` of `to_choose_from`.
        """
        chosen = self.to_choose_from()[:count]
        return self.noted._replace(sent=chosen[-1]) if chosen else self.noted

    def noted_in_log(self, relay: Relay) -> None:
        """Note that `relay`, from `to_note`, is committed."""
        self.noted = relay
        self._is_to_note = False

    def to_send(self) -> Sequence[Position]:
        """The dead letters of the batch that is under way, in order."""
        return [one for one in self._dead if one <= self.noted.sent]

    def answered(self, code: ErrorCode) -> bool:
        """The leader of the dead letters' partition answered; returns whether that helps.

        If not, the same batch is to be sent again after a pause.
        """
        if code in _LOST_PRODUCER:
            self._needs_producer = True
            return True
        sent = self.to_send()
        if code in _TOO_LARGE and len(sent) > 1:  # so nothing of it was appended
            self._most = len(sent) // 2
            self.noted = self.noted._replace(sent=sent[self._most - 1])
            self._is_to_note = True
            return True
        if code not in _ARRIVED:
            return False
        self._pass()
        return True

    def _fetch(self) -> None:
        """Fetch the candidates for a batch, and all dead letters under way."""
        while (head := self._behind.peek()) is not None and (
            len(self._dead) < MOST_RECORDS or head <= self.noted.sent
        ):
            self._behind.pop()
            self._dead.append(head)

    def _pass(self) -> None:
        """Move past the batch under way: it has arrived, or is gone."""
        noted = self.noted
        count = 0
        while self._dead and self._dead[0] <= noted.sent:
            self._dead.popleft()
            count += 1
        sequence = (noted.sequence + count) % SEQUENCE_SPACE
        self.noted = noted._replace(sequence=sequence, arrived=noted.sent)
        self._is_to_note = True
