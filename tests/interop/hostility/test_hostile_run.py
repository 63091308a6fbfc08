"""The hostile run in short; `make hostile` is the whole of it, which also judges time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile.clients.bystanders import Crowd
from tests.hostile.run import MEGABYTE, Run, Settings
from tests.hostile.verdict import describe
from tests.interop.conftest import against_apache

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it looks into our broker's log and memory"),
    pytest.mark.timeout(600),
    pytest.mark.slow,
]

FRAMES = 3000
SEED = 2026
CROWD = Crowd(deaf=20, claiming=20, idle=100)
MOST_LEFT_BYTES = 60 * MEGABYTE
"""The whole run has a third of it to hold; this one may have neighbours."""


@pytest.mark.parametrize(
    "in_cluster", [False, pytest.param(True, marks=[pytest.mark.java, pytest.mark.slow])]
)
def test_hostile_clients_harm_no_others(in_cluster: bool, tmp_path: Path) -> None:
    settings = Settings(
        seed=SEED,
        frames=range(FRAMES),
        directory=tmp_path / "run",
        crowd=CROWD,
        frames_per_second=0,
        in_cluster=in_cluster,
        most_left_bytes=MOST_LEFT_BYTES,
        slowest_ms=None,
    )
    run = Run(settings)

    findings = run.go().findings

    assert findings.counts == {}, findings.summary()
    assert run.attack.sent > FRAMES / 2, describe(run)
    assert run.attack.answers.counts.total() > FRAMES / 4, describe(run)
    assert run.outcome.ledger_records > 0
    assert run.outcome.report.committed_transfers > 0
