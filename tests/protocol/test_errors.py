"""Error codes are Kafka's, and what they say is ours."""

from __future__ import annotations

import pickle

import pytest

from protocol.errors import ApiError, ErrorCode
from tests.golden import java_batches


@pytest.mark.java
def test_numbers_names_and_retriability_are_kafkas() -> None:
    ours = {int(code): (code.name, code.is_retriable) for code in ErrorCode}
    assert ours == java_batches.ask([]).errors


def test_every_code_says_what_happened_in_one_sentence() -> None:
    for code in ErrorCode:
        assert code.meaning.endswith(".")
        assert code.meaning.count(". ") == 0
        assert len(code.meaning) <= 90


def test_a_code_that_only_newer_brokers_have_counts_as_unexpected() -> None:
    assert ErrorCode(9_999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_error_without_a_message_has_the_meaning_of_its_code() -> None:
    assert ApiError(ErrorCode.CORRUPT_MESSAGE).message == ErrorCode.CORRUPT_MESSAGE.meaning
    assert ApiError(ErrorCode.CORRUPT_MESSAGE, "why").message == "why"


def test_error_as_text_names_the_code_and_its_number() -> None:
    assert str(ApiError(ErrorCode.INVALID_RECORD, "no key")) == "INVALID_RECORD (87): no key"


def test_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ApiError(ErrorCode.INVALID_RECORD, "no key")))
    assert (error.code, error.message) == (ErrorCode.INVALID_RECORD, "no key")
