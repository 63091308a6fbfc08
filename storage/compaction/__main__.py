"""`python -m storage.compaction`: the process that cleans (`worker`), compiled or not."""

from __future__ import annotations

from compiled.activation import activate

if __name__ == "__main__":
    activate()
    from storage.compaction.worker import main

    main()
