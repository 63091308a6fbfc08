"""Coordinators of groups and transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.coordinators.internal_topics import GROUP_KEY, TRANSACTION_KEY
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker

if TYPE_CHECKING:
    from pathlib import Path

SHARE_KEY = 2


def test_several_groups_are_looked_up_in_one_request(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        answer = await broker.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4)
        assert [(one.key, one.node_id, one.port) for one in answer.coordinators] == [
            ("a", 0, 9092),
            ("b", 0, 9092),
        ]

    run_group_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_transactional_id_is_coordinated_where_its_partition_is_led(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        request = FindCoordinatorRequest(key="tx", key_type=TRANSACTION_KEY)
        answer = await broker.ask(request, version)
        assert (answer.error_code, answer.node_id) == (ErrorCode.NONE, 0)
        created = broker.metadata.topic("__transaction_state")
        assert created is not None
        assert len(created.partitions) == 3

    run_group_broker(tmp_path, scenario, transaction_state_log_num_partitions=3)


def test_a_type_of_key_that_has_no_coordinator_is_an_invalid_request(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        request = FindCoordinatorRequest(coordinator_keys=["g:topic:0"], key_type=SHARE_KEY)
        [found] = (await broker.ask(request, 6)).coordinators
        assert found.error_code == ErrorCode.INVALID_REQUEST

    run_group_broker(tmp_path, scenario)


@pytest.mark.parametrize(("version", "message"), [(1, "NONE"), (2, "NONE"), (3, "NONE")])
@pytest.mark.parametrize("key_type", [GROUP_KEY, TRANSACTION_KEY])
def test_success_has_the_message_that_apache_kafka_gives_it(
    tmp_path: Path, key_type: int, version: int, message: str
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        request = FindCoordinatorRequest(key="orders", key_type=key_type)
        answer = await broker.ask(request, version)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, message)

    run_group_broker(tmp_path, scenario)


def test_success_of_many_has_no_message_and_a_failure_keeps_its_own(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        [found] = (await broker.ask(FindCoordinatorRequest(coordinator_keys=["a"]), 4)).coordinators
        assert (found.error_code, found.error_message) == (ErrorCode.NONE, "")
        refused = await broker.ask(FindCoordinatorRequest(key="g", key_type=SHARE_KEY), 3)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert refused.error_message not in {"", "NONE"}

    run_group_broker(tmp_path, scenario)
