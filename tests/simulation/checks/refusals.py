"""Requests that come too late: each must be refused, by every broker, however it keeps its epochs.

What a broker knows is read when a request arrives: from then on it may only know better.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from broker.runtime.deferred import Deferred
from protocol.messages.alter_partition import AlterPartitionRequest
from protocol.messages.controlled_shutdown import ControlledShutdownRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.context import Context

ANY_EPOCH = -1
REPORTS: list[Callable[[str], None]] = []
"""Receivers of violations of the current run."""
SEEN: Counter[str] = Counter()
"""Count of stale epochs by kind, in all runs of this process."""

Judge = tuple[str, "Callable[[Any], bool]"]
"""The kind of epoch that is stale, and a test whether an answer refuses the request for it."""


def report(text: str) -> None:
    """Tell of a violation in the run that is under way."""
    for listener in REPORTS:
        listener(text)


def watch() -> None:
    """Have all brokers of this process watched from now on."""
    assert all_handlers.MODULES
    for request, judge in (
        (LeaderAndIsrRequest, _controllers_word),
        (UpdateMetadataRequest, _controllers_word),
        (StopReplicaRequest, _controllers_word),
        (AlterPartitionRequest, _brokers_word),
        (ControlledShutdownRequest, _brokers_word),
        (FetchRequest, _fetch),
    ):
        key = int(request.API_KEY)
        ROUTES[key] = dataclasses.replace(ROUTES[key], handler=_watched(ROUTES[key].handler, judge))


def _watched(
    handler: Callable[[Context, Any], Any], judge: Callable[[Context, Any], Judge | None]
) -> Callable[[Context, Any], Any]:
    def handle(context: Context, request: Any) -> Any:
        judged = judge(context, request)
        answer = handler(context, request)
        if judged is None:
            return answer
        reason, is_refusal = judged
        what = f"{reason} of {type(request).__name__}"
        SEEN[what] += 1

        def see(response: Any) -> None:
            if not is_refusal(response):
                report(f"broker {context.broker.config.broker_id} takes an old {what}")

        if not isinstance(answer, Deferred):
            see(answer)
            return answer

        def pass_on(response: Any) -> Any:
            see(response)
            return response

        return answer.map(pass_on)

    return handle


def _has_error(response: Any) -> bool:
    return bool(response.error_code)


def _controllers_word(context: Context, request: Any) -> Judge | None:
    if ANY_EPOCH < request.broker_epoch < context.broker.broker_epoch:
        return "broker epoch", _has_error
    if request.controller_epoch < context.broker.control.controller_epoch:
        return "controller epoch", _has_error
    return None


def _brokers_word(context: Context, request: Any) -> Judge | None:
    known = context.broker.controller.context
    broker = None if known is None else known.live_brokers.get(request.broker_id)
    if broker is not None and ANY_EPOCH < request.broker_epoch < broker.epoch:
        return "broker epoch", _has_error
    return None


def _fetch(context: Context, request: FetchRequest) -> Judge | None:
    replicas = context.broker.replicas
    stale = set()
    for topic in request.topics:
        name = topic.topic or replicas.names_by_id.get(topic.topic_id, "")
        for wanted in topic.partitions:
            partition = replicas.partition(name, wanted.partition)
            if partition is not None and wanted.current_leader_epoch not in (
                ANY_EPOCH,
                partition.leader_epoch,
            ):
                stale.add(wanted.partition)
    if not stale:
        return None

    def is_refusal(response: Any) -> bool:
        if response.error_code:
            return True
        refused = {
            one.partition_index
            for topic in response.responses
            for one in topic.partitions
            if one.error_code
        }
        return stale <= refused

    return "leader epoch", is_refusal
