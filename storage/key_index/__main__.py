"""`python -m storage.key_index`: a process that builds indexes or looks up, compiled or not."""

from __future__ import annotations

from compiled.activation import activate

if __name__ == "__main__":
    activate()
    from storage.key_index.worker import main

    main()
