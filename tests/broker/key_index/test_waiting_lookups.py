"""Valid requests for lists of delayed records."""

from __future__ import annotations

import pytest

from broker.delivery.waiting_list import FIRST
from broker.delivery.waiting_queue import Waiting
from broker.key_index.request import BadRequestError
from broker.key_index.waiting_lookups import read_list_request
from protocol.delays.delay_headers import LONGEST_DELAY_MS

LATEST_DUE_MS = (1 << 63) - 1


def test_a_list_begins_with_the_earliest_due_record() -> None:
    assert read_list_request("topic=reminders").start == (0, FIRST)


@pytest.mark.parametrize("due_ms", [-1, 1_795_662_404_333, 10**18, LONGEST_DELAY_MS, LATEST_DUE_MS])
def test_a_list_goes_on_at_any_time_at_which_a_record_can_be_due(due_ms: int) -> None:
    request = read_list_request(f"topic=reminders&start=3:{due_ms}:170")

    assert request.start == (3, Waiting(due_ms, 170))


@pytest.mark.parametrize("start", ["", "0:1", "0:1:2:3", "-1:0:0", "0:one:0", f"0:{10**19}:0"])
def test_a_malformed_start_is_refused(start: str) -> None:
    with pytest.raises(BadRequestError, match="is no PARTITION:DUE:OFFSET"):
        read_list_request(f"topic=reminders&start={start}")
