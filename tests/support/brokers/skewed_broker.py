"""Our broker with a wall clock that is wrong.

`python -m tests.support.brokers.skewed_broker --config …` starts it; `BROKER_CLOCK_AHEAD_MS` says
by how much; a negative number is behind.
"""

from __future__ import annotations

from compiled.activation import activate

activate()  # before anything is imported that it may replace

import os
import sys

from broker.__main__ import main
from broker.runtime.clock import SystemClock

AHEAD = "BROKER_CLOCK_AHEAD_MS"


class _SkewedClock(SystemClock):
    def now_ms(self) -> int:
        return super().now_ms() + int(os.environ[AHEAD])


if __name__ == "__main__":
    import broker.runtime.platform

    vars(broker.runtime.platform)["SystemClock"] = _SkewedClock
    sys.exit(main())
