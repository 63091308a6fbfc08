"""Our broker, which reports at its end what only the collector of garbage cycles could free.

`python -m tests.support.brokers.garbage_broker --config …`; `BROKER_GARBAGE_FILE` names the file
that gets a JSON object of counts by type. A garbage cycle for each request would hold what the
request held until tens of thousands are collected at once, while all clients wait.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections import Counter
from pathlib import Path

from broker.__main__ import main

FILE = "BROKER_GARBAGE_FILE"

if __name__ == "__main__":
    gc.set_debug(gc.DEBUG_SAVEALL)
    code = main()
    gc.collect()
    counts = Counter(type(one).__name__ for one in gc.garbage)
    Path(os.environ[FILE]).write_text(json.dumps(counts))
    sys.exit(code)
