"""DumpLogSegments of each version reads what a transaction coordinator wrote."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from coordinator.partitioner import partition_for
from tests.interop.conftest import eventually

if TYPE_CHECKING:
    from tests.interop.conftest import NewName, NewTopicFunction
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

PARTITIONS = 50
NUMBERS = {
    "Empty": 0,
    "Ongoing": 1,
    "PrepareCommit": 2,
    "PrepareAbort": 3,
    "CompleteCommit": 4,
    "CompleteAbort": 5,
}
OLD_STATE = re.compile(r"transactionalId=(\S+) payload: .*state=(\w+),partitions=\[([^\]]*)\]")
NEW_STATE = re.compile(r'key: (\{.*?\}\}) payload: (\{"version".*\})')


def test_the_transaction_log_is_decoded(
    broker: BrokerProcess, new_topic: NewTopicFunction, new_name: NewName, tools: Tools
) -> None:
    topic, name = new_topic(), new_name("payments")
    run_transactions(broker, topic, name)
    directory = broker.data_directory / f"__transaction_state-{partition_for(name, PARTITIONS)}"
    log = directory / f"{0:020}.log"

    def is_decoded() -> bool:
        said = tools.check(
            "dump-log", "--files", str(log), "--transaction-log-decoder", "--print-data-log"
        )
        states = decoded(said.output, name)
        partitions = [f"{topic}-0"]
        return states == [
            ("Empty", []),
            ("Ongoing", partitions),
            ("PrepareCommit", partitions),
            ("CompleteCommit", []),
            ("Ongoing", partitions),
            ("PrepareAbort", partitions),
            ("CompleteAbort", []),
        ]

    eventually(is_decoded)


def run_transactions(broker: BrokerProcess, topic: str, name: str) -> None:
    """Commit one, abort one."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"value")
        producer.flush()
        end(20)


def decoded(said: str, name: str) -> list[tuple[str, list[str]]]:
    """States and partitions of the transactional id, in whichever way the tool shows them."""
    found = [
        (state, [each for each in partitions.split(",") if each])
        for key, state, partitions in OLD_STATE.findall(said)
        if key == name
    ]
    shown = {number: state for state, number in NUMBERS.items()}
    for key, value in NEW_STATE.findall(said):
        data = json.loads(value)["data"]
        if json.loads(key)["data"]["transactionalId"] == name:
            partitions = [
                f"{each['topic']}-{index}"
                for each in data["transactionPartitions"] or ()
                for index in each["partitionIds"]
            ]
            state = data["transactionStatus"]  # a number until 4.3, a name since 4.4
            found.append((shown.get(state, state), partitions))
    return found
