"""Znodes written by older tools, and by brokers of an inter-broker protocol before 2.7.

They hold lists of partitions: `{"version":1,"partitions":[{"topic":"t","partition":0}]}`, in a
reassignment with `"replicas":[2,1]` each.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controller.context import TopicPartition
from controller.znodes import ADMIN, MalformedZnodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.znodes import Replicas

REASSIGNMENT = f"{ADMIN}/reassign_partitions"
PREFERRED_ELECTION = f"{ADMIN}/preferred_replica_election"


def decode_partitions(path: str, data: bytes | None) -> list[TopicPartition]:
    """Read the partitions in a node. Raises MalformedZnodeError."""
    return [at for at, _ in _entries(path, data)]


def decode_reassignment(path: str, data: bytes | None) -> dict[TopicPartition, Replicas]:
    """Read the target replicas of partitions. Raises MalformedZnodeError."""
    try:
        return {
            at: tuple(int(one) for one in entry["replicas"]) for at, entry in _entries(path, data)
        }
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedZnodeError(f"{path} holds {data!r}, which cannot be read") from error


def encode_reassignment(moves: Mapping[TopicPartition, Replicas]) -> bytes:
    """Bytes of the remaining part of a reassignment."""
    content = {
        "version": 1,
        "partitions": [
            {"topic": at.topic, "partition": at.partition, "replicas": list(replicas)}
            for at, replicas in moves.items()
        ],
    }
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _entries(path: str, data: bytes | None) -> list[tuple[TopicPartition, dict[str, list[int]]]]:
    try:
        return [
            (TopicPartition(str(entry["topic"]), int(entry["partition"])), entry)
            for entry in json.loads(data or b"")["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedZnodeError(f"{path} holds {data!r}, which cannot be read") from error
