"""A batch of retries begins where the last one ended, or where the topic begins by now."""

from __future__ import annotations

import pytest

from spark_jobs.errors import JobError
from spark_jobs.retry.retry_batches import Batch, next_batch

LAST = Batch(4, {"t": {0: 0}}, {"t": {0: 10}}, {})
FIRST, DUE = {"t": {0: 25}}, {"t": {0: 40}}


def test_records_that_are_gone_end_the_job_unless_it_may_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(JobError, match="Go on without them: --on-data-loss record"):
        next_batch(LAST, FIRST, DUE, {})
    assert next_batch(LAST, FIRST, DUE, {}, may_lose=True).starting == FIRST
    assert "t-0: records at offsets 10 to 24 went before they were read" in capsys.readouterr().err
    with pytest.raises(JobError, match="deleted or truncated"):
        next_batch(LAST, {"t": {0: 0}}, {"t": {0: 5}}, {}, may_lose=True)
