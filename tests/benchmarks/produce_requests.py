"""Cost of a produce request from socket buffer to answer: microseconds of CPU per batch.

    python -m tests.benchmarks.produce_requests [--smoke]

Everything a broker does for a request of an idempotent Java producer, but the two system calls on
the socket: the frame is put where the kernel would, and the answer is dropped. The log is on disk.
Each number is the best of many rounds, as what disturbs a round can only make it slower.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import broker.handlers.records.produce  # noqa: F401  (the handler registers itself)
from broker.network.client import Client
from broker.network.closure_log import ClosureLog
from broker.network.connection import Connection
from broker.network.connection_services import ConnectionServices, InFlight
from broker.network.frame_buffer import BUFFER_BYTES
from broker.network.request_memory import RequestMemory
from broker.requests.dispatch import Dispatcher
from broker.runtime.clock import SystemClock
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from tests.support.broker_parts.services import Adapters, parts_in_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.requests.services import BrokerServices

VERSION = 13
BATCH_BYTES = 16_384
RECORD_OVERHEAD_BYTES = 8
TOPIC_IDS = {name: UUID(int=index) for index, name in enumerate(("one", "many"), 1)}
ROUNDS = 50
MAX_REQUEST_BYTES = 100 << 20


@dataclass(frozen=True, slots=True)
class Load:
    """Request that a producer sends over and over: one batch to each of some partitions."""

    name: str
    record_bytes: int
    records: int
    partitions: int = 1
    codec: Codec = Codec.NONE


@dataclass(frozen=True, slots=True)
class Cost:
    """One measured load."""

    load: Load
    microseconds_per_batch: float


def loads() -> list[Load]:
    """Batches as they are at the client's defaults, and small ones over many partitions."""
    return [
        *(
            Load(f"{size} B records", size, BATCH_BYTES // (size + RECORD_OVERHEAD_BYTES))
            for size in (10, 100, 1000)
        ),
        Load("1000 B records, lz4", 1000, 16, codec=Codec.LZ4),
        Load("1 record to each of 64 partitions", 100, 1, partitions=64),
        Load("5 records to each of 64 partitions", 100, 5, partitions=64),
    ]


def run(rounds: int, requests: int) -> list[Cost]:
    """Each load, the best of `rounds` of so many requests, in a directory removed afterwards."""
    with tempfile.TemporaryDirectory() as path:
        return asyncio.run(_measure(path, rounds, requests))


async def _measure(path: str, rounds: int, requests: int) -> list[Cost]:
    directories = LogDirectories.open([path], Disk(LocalFileSystem()), LogSettings())
    directories.identify(0, "benchmark", SystemClock().now_ms())
    dispatcher = Dispatcher(_broker(directories))
    costs = []
    for producer_id, load in enumerate(loads()):
        best = float("inf")
        for number in range(rounds):
            frames = _frames(load, producer_id, number * requests, requests)
            best = min(best, _time(dispatcher, frames) / (requests * load.partitions))
        costs.append(Cost(load, best))
    for log in directories:
        log.release()
    return costs


def _time(dispatcher: Dispatcher, frames: list[bytes]) -> float:
    """Microseconds that one connection takes for the frames, which come one at a time."""
    with socket.socket() as connected:
        transport = _Sink(connected)
        services = ConnectionServices(
            dispatcher,
            SystemClock(),
            RequestMemory(MAX_REQUEST_BYTES, lambda _: None),
            InFlight(len(frames)),
            MAX_REQUEST_BYTES,
            BUFFER_BYTES,
            ClosureLog(SystemClock(), 1),
        )
        connection = Connection(services, Client("PLAINTEXT", {}))
        connection.connection_made(transport)
        started = time.process_time()
        for frame in frames:
            connection.get_buffer(-1)[: len(frame)] = frame
            connection.buffer_updated(len(frame))
        spent = time.process_time() - started
    assert transport.writes == len(frames)
    return spent * 1e6


class _TurnClock(SystemClock):
    """No turn of the loop ever takes too long: on a busy machine, too, all is done in the first.

    What a request leaves for later turns goes through threads, which this benchmark does not count.
    """

    def monotonic_ms(self) -> int:
        super().monotonic_ms()  # costs what it costs a broker
        return 0


class _Sink(asyncio.Transport):
    """Takes what is written and forgets it."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__({"socket": connected})
        self.writes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes += 1

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """No answer is ever held back."""


def _broker(directories: LogDirectories) -> BrokerServices:
    """The parts of a broker, leading one topic of each kind."""
    adapters = Adapters(clock=_TurnClock(), logs=directories)
    services = parts_in_memory(BrokerConfig(broker_id=0), adapters).services
    for name, topic_id in TOPIC_IDS.items():
        for index in range(1 if name == "one" else 64):
            state = LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=0,
                leader=0,
                leader_epoch=0,
                isr=[0],
                partition_epoch=0,
                replicas=[0],
                is_new=True,
            )
            assert services.replicas.lead_or_follow(name, topic_id, state) is ErrorCode.NONE
    return services


def _frames(load: Load, producer_id: int, first: int, count: int) -> list[bytes]:
    """Requests number `first` and following of one producer."""
    now_ms = SystemClock().now_ms()
    value = bytes(range(256)) * (load.record_bytes // 256 + 1)
    records = [NewRecord(now_ms, None, value[: load.record_bytes])] * load.records
    header = struct.pack(">hhih", ApiKey.PRODUCE, VERSION, 7, 10) + b"producer-1\0"
    kind = ProduceRequest.TopicData
    topic_id = TOPIC_IDS["one" if load.partitions == 1 else "many"]
    frames = []
    for number in range(first, first + count):
        batch = build_batch(
            records,
            codec=load.codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=number * load.records,
        )
        data = [kind.PartitionData(index=index, records=batch) for index in range(load.partitions)]
        topics = [kind(topic_id=topic_id, partition_data=data)]
        body = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics).encode(VERSION)
        frames.append(struct.pack(">i", len(header) + len(body)) + header + body)
    return frames


def main(arguments: Sequence[str] | None = None) -> list[Cost]:
    """Measure, print and return every load."""
    parser = argparse.ArgumentParser(description="What produce requests cost.")
    parser.add_argument("--smoke", action="store_true", help="one short round, to see it run")
    is_smoke = parser.parse_args(arguments).smoke
    costs = run(rounds=1, requests=2) if is_smoke else run(rounds=ROUNDS, requests=40)
    print(f"{'':40} {'us per batch':>12}")
    for cost in costs:
        print(f"{cost.load.name:40} {cost.microseconds_per_batch:12.2f}")
    return costs


if __name__ == "__main__":
    main()
