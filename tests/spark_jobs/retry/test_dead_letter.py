"""What is put back of a dead letter, and what is said of a record that is none."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Message

from spark_jobs.retry.dead_letter import NoDeadLetterError, Replayed, replayed_of

SOURCE = b"orders/1/17"
LETTER = {
    "source": {"topic": "orders", "partition": 1, "offset": 17},
    "raw": "walk",
    "raw_base64": None,
    "raw_bytes": 4,
}
NO_LETTER = "it has no header dead-letter-source, and its value is not of the job `retry`"


def letter(value: bytes | None, *headers: tuple[str, bytes | None]) -> Message:
    return Message(topic="dead", partition=0, offset=0, value=value, headers=list(headers))


def test_a_letter_of_a_retry_topic_goes_where_its_header_says() -> None:
    dead = letter(b"walk", ("dead-letter-source", b"a.retry/2/5"), ("reason", b"no stock"))
    assert replayed_of(dead, SOURCE) == Replayed("a.retry", 2, b"walk", [("reason", b"no stock")])


def test_a_letter_of_the_job_goes_where_its_value_says() -> None:
    dead = letter(json.dumps(LETTER).encode())
    assert replayed_of(dead, SOURCE) == Replayed("orders", 1, b"walk", [("origin", SOURCE)])


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"walk", b"\xff", b"{}", b"[]", b"17", b'{"source": "orders/0/1"}'),
        json.dumps({**LETTER, "raw": None}).encode(),
        json.dumps({**LETTER, "source": {"topic": "orders", "partition": "first"}}).encode(),
    ],
)
def test_of_any_other_record_the_missing_header_is_named(value: bytes | None) -> None:
    with pytest.raises(NoDeadLetterError) as error:
        replayed_of(letter(value), SOURCE)
    assert str(error.value) == NO_LETTER


@pytest.mark.parametrize("place", [b"orders", b"orders/0", b"orders/-1/3", b"/0/1", b"\xff", None])
def test_a_header_that_cannot_be_read_is_named_with_its_value(place: bytes | None) -> None:
    with pytest.raises(
        NoDeadLetterError, match=r"^its header dead-letter-source is '.*', which is"
    ):
        replayed_of(letter(b"walk", ("dead-letter-source", place)), SOURCE)


def test_a_letter_that_was_cut_says_so() -> None:
    with pytest.raises(NoDeadLetterError, match="its value is 5 bytes long, of which the letter"):
        replayed_of(letter(json.dumps({**LETTER, "raw_bytes": 5}).encode()), SOURCE)
