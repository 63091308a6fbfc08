"""Requests of coordinators to brokers: calls to this one, connections to the others.

Transactions have two: WriteTxnMarkers, to leaders, and AddPartitionsToTxn, from a leader to a
coordinator. They are sent in versions that Apache Kafka 3.9 understands too.

A partition that is not in this broker's metadata may be deleted, or so new that no UpdateMetadata
has named it yet; a transaction is complete without its marker only in the first case. The store
knows. Its answer counts for transactions that were decided before the look-up: a later one may have
written to a topic recreated under the same name.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from broker.coordinators.internal_topics import TRANSACTION_KEY
from broker.coordinators.markers import write_markers
from broker.network.links import LinkError
from controller.metadata_store.store import NoNodeError, StoreError
from controller.topics.topic_names import TRANSACTION_STATE_TOPIC
from controller.znodes import decode_topic, delete_topic_path, topic_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.coordinators.services import CoordinatorServices
    from broker.network.links import Link
    from protocol.messages.transactions import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )
    from protocol.messages.update_metadata import UpdateMetadataRequest
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

MARKERS_VERSION: Final = 1
ADDITION_VERSION: Final = 5
MARKERS_PURPOSE: Final = "transaction-markers"
ADDITION_PURPOSE: Final = "transaction-verification"
NO_LEADER: Final = -1
DELETED_KEPT_MS: Final = 10_000
"""Time for which a partition is remembered as deleted before the store is read again.

Fixed: it is also the longest delay of markers for a topic recreated under the same name.
"""


class Peers:
    """This broker and the others in its metadata."""

    def __init__(self, broker: CoordinatorServices) -> None:
        self._broker = broker
        self._links: dict[tuple[int, str], Link] = {}
        self._looked_up: set[tuple[str, int]] = set()
        self._deleted: dict[tuple[str, int], int] = {}
        """Deleted partitions, with the number of the look-up that found it."""
        self.look_ups = 0
        broker.metadata.on_update(self._leave_the_dead)

    def close(self) -> None:
        """Close the connections."""
        for link in self._links.values():
            link.close()
        self._links.clear()

    def partition_count(self) -> int:
        """Number of partitions of `__transaction_state`, now or once it is created."""
        return self._broker.internal_topics.partition_count(TRANSACTION_KEY)

    def leader(self, topic: str, partition: int, since: int) -> int | None:
        """The leader's id, negative if there is none now; None for a deleted partition.

        None only after a look-up with a number above `since`.
        """
        state = self._broker.metadata.partition(topic, partition)
        if state is not None:
            return state.leader
        key = topic, partition
        if self._deleted.get(key, 0) > since:
            return None
        if key not in self._looked_up:
            self._looked_up.add(key)
            self.look_ups += 1
            self._broker.spawn(self._look_up(*key, self.look_ups), f"look {topic}-{partition} up")
        return NO_LEADER

    def other_coordinator(self, partition: int) -> int | None:
        """The broker that leads a partition of `__transaction_state`, unless it is this one."""
        state = self._broker.metadata.partition(TRANSACTION_STATE_TOPIC, partition)
        leader = NO_LEADER if state is None else state.leader
        is_other = leader >= 0 and leader != self._broker.config.broker_id
        return leader if is_other else None

    def write_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        answered: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        """Send markers to a broker; `answered(None)` if there is no response."""
        if broker_id == self._broker.config.broker_id:
            write_markers(self._broker, request).then(answered, lambda _: answered(None))
            return

        def done(response: Response | None) -> None:
            answered(cast("WriteTxnMarkersResponse | None", response))

        self.ask((broker_id, MARKERS_PURPOSE), request, MARKERS_VERSION, done)

    def add_partitions(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        answered: Callable[[AddPartitionsToTxnResponse | None], None],
    ) -> None:
        """Ask another broker's coordinator; `answered(None)` if there is no response."""

        def done(response: Response | None) -> None:
            answered(cast("AddPartitionsToTxnResponse | None", response))

        self.ask((broker_id, ADDITION_PURPOSE), request, ADDITION_VERSION, done)

    def ask(
        self,
        where: tuple[int, str],
        request: Request,
        version: int,
        answered: Callable[[Response | None], None],
    ) -> None:
        """Ask another broker, on a connection for one purpose; `answered(None)` without answer."""
        asking = self._ask(where, request, version, answered)
        self._broker.spawn(asking, f"{where[1]} to broker {where[0]}")

    def _leave_the_dead(self, request: UpdateMetadataRequest) -> None:
        """Stop waiting for a broker once the metadata no longer has it."""
        alive = {broker.id for broker in request.live_brokers}
        for where in [where for where in self._links if where[0] not in alive]:
            self._links.pop(where).close()

    async def _look_up(self, topic: str, partition: int, number: int) -> None:
        """Look up whether a partition is deleted; unknown while the store is unavailable."""
        store = self._broker.store
        try:
            if await store.exists(delete_topic_path(topic)):
                is_deleted = True
            else:
                assignment = decode_topic(topic, (await store.get(topic_path(topic))).data)
                is_deleted = partition not in assignment.partitions
        except NoNodeError:
            is_deleted = True
        except StoreError:
            is_deleted = False
        finally:
            self._looked_up.discard((topic, partition))
        if is_deleted:
            self._deleted[topic, partition] = number
            forget = partial(self._forget, (topic, partition), number)
            self._broker.timers.schedule(DELETED_KEPT_MS, forget)

    def _forget(self, key: tuple[str, int], number: int) -> None:
        if self._deleted.get(key) == number:
            del self._deleted[key]

    async def _ask(
        self,
        where: tuple[int, str],
        request: Request,
        version: int,
        done: Callable[[Response | None], None],
    ) -> None:
        response: Response | None = None
        try:
            link = self._links.get(where)
            if link is None:
                link = self._links[where] = self._broker.links.link(*where)
            response = await link.ask(request, version)
        except LinkError:
            pass  # which counts as no answer
        except Exception:  # the border: this request gets an error, the queue goes on
            logger.exception("%s to broker %d failed", *reversed(where))
        finally:  # also on cancellation: the caller has no other request under way
            done(response)
