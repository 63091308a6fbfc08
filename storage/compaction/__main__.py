"""`python -m storage.compaction`: the process that cleans (`worker`), compiled or not."""

from __future__ import annotations

import os

from compiled.activation import activate

if __name__ == "__main__":
    activate()
    # Or numpy starts a thread for each processor, for algebra that is not wanted here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from storage.compaction.worker import main

    main()
