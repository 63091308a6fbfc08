"""The stream, ended and begun again, with its store and without."""

from __future__ import annotations

import shutil
import time
from threading import Thread

import pytest
from confluent_kafka import Producer
from stream import application

SECONDS = 30.0


@pytest.fixture
def counts(kafka_broker, kafka_topic):
    name = f"{kafka_topic}-counts"
    kafka_broker.create_topic(name)
    yield name
    kafka_broker.delete_topic(name)


@pytest.fixture
def count(kafka_broker, kafka_topic, counts, tmp_path):
    """Produce a line, and run the stream until all its words are counted."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

    def count(line):
        due = len(kafka_broker.records(counts)) + len(line.split())
        producer.produce(kafka_topic, line)
        assert producer.flush(SECONDS) == 0
        app = application(kafka_broker.bootstrap_servers, kafka_topic, counts, tmp_path / "state")
        ending = Thread(target=end, args=(app, lambda: len(kafka_broker.records(counts)) >= due))
        ending.start()
        app.run()
        ending.join()

    return count


def end(app, is_due):
    """End a stream once it has done its work, or in the end."""
    deadline = time.monotonic() + SECONDS
    while not is_due() and time.monotonic() < deadline:
        time.sleep(0.01)
    app.stop()


def newest(broker, counts):
    """The last count of each word that is committed."""
    return {record.key.decode(): int.from_bytes(record.value) for record in broker.records(counts)}


def test_counts_go_on_after_the_stream_was_ended(kafka_broker, counts, count):
    count("to be or not to be")
    assert newest(kafka_broker, counts) == {"to": 2, "be": 2, "or": 1, "not": 1}
    count("to see")
    assert newest(kafka_broker, counts)["to"] == 3


def test_counts_go_on_without_the_store_they_were_in(kafka_broker, counts, count, tmp_path):
    count("to be")
    shutil.rmtree(tmp_path / "state")
    kafka_broker.restart()
    count("to be")
    assert newest(kafka_broker, counts) == {"to": 2, "be": 2}
