"""A batch of retries begins where the last one ended, or where the topic begins by now."""

from __future__ import annotations

import pytest

from spark_jobs.errors import JobError
from spark_jobs.retry.retry_batches import Batch, lost_between, next_batch

LAST = Batch(4, {"t": {0: 0}}, {"t": {0: 10}}, {})
FIRST, DUE = {"t": {0: 25}}, {"t": {0: 40}}


def test_records_that_are_gone_end_the_job_unless_it_may_go_on() -> None:
    with pytest.raises(JobError, match="Go on without them: --on-data-loss record"):
        next_batch(LAST, FIRST, DUE, {})
    batch = next_batch(LAST, FIRST, DUE, {}, may_lose=True)
    assert batch.starting == FIRST
    assert [*lost_between(LAST, batch)] == [("t-0", 10, 25)]
    assert [*lost_between(None, batch)] == []
    with pytest.raises(JobError, match="deleted or truncated"):
        next_batch(LAST, {"t": {0: 0}}, {"t": {0: 5}}, {}, may_lose=True)


def test_what_was_due_before_the_topic_lost_it_is_a_batch_of_nothing() -> None:
    batch = next_batch(LAST, FIRST, {"t": {0: 20}}, {}, may_lose=True)
    assert (batch.starting, batch.rows) == ({"t": {0: 20}}, 0)
