"""Our broker, which tells what held its event loop up, where it is, and what it keeps.

`python -m tests.hostile.watched_broker --config …`. A line `HELD` is milliseconds of processor
time, then what was called: of a frame, its API key, version, correlation id and size. It is
processor time, so that a busy machine does not make it more. SIGUSR1 has it write down the calls it
is in, however busy it is; SIGUSR2 what is in its memory, which collects garbage first.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import gc
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.__main__ import main
from broker.dispatch import Dispatcher
from protocol.headers import parse_request_header
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

HELD: Final = "HELD"
TOLD_MS: Final = 20.0
MOST_TYPES: Final = 25


def _watch_frames() -> None:
    dispatch: Callable[..., Any] = Dispatcher.dispatch

    def timed(self: Dispatcher, frame: memoryview, *others: Any) -> Any:
        begin = time.thread_time()
        answer = dispatch(self, frame, *others)
        spent_ms = (time.thread_time() - begin) * 1000
        if spent_ms >= TOLD_MS:
            _tell(spent_ms, f"frame {_shown(frame)}, {len(frame)} bytes")
        return answer

    Dispatcher.dispatch = timed  # type: ignore[method-assign,assignment]


def _watch_callbacks() -> None:
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begin = time.thread_time()
        run(handle)
        spent_ms = (time.thread_time() - begin) * 1000
        if spent_ms >= TOLD_MS:
            _tell(spent_ms, f"callback {handle!r}"[:300])

    asyncio.Handle._run = timed  # type: ignore[assignment,method-assign]


def _shown(frame: memoryview) -> str:
    try:
        header, _ = parse_request_header(frame)
    except DecodeError as error:
        return str(error)
    return f"{header.api_key} v{header.api_version} number {header.correlation_id}"


def _tell(spent_ms: float, what: str) -> None:
    print(f"{HELD} {spent_ms:.0f} ms: {what}", file=sys.stderr, flush=True)


def _tell_memory(*_: object) -> None:
    """How much goes with the collector, how much with the allocator; what went, what is left."""
    sizes = [_resident()]
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    garbage = gc.garbage[:]
    gc.set_debug(0)
    gc.garbage.clear()
    _tell_objects("garbage", garbage)
    del garbage
    gc.collect()
    sizes.append(_resident())
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    sizes.append(_resident())
    gc.unfreeze()
    _tell_objects("left", gc.get_objects())
    print(f"resident, collected, trimmed: {' '.join(sizes)}", file=sys.stderr, flush=True)


def _tell_objects(what: str, objects: list[Any]) -> None:
    """The types that are most, and who holds large buffers."""
    counts = Counter(map(_type_name, objects))
    held: Counter[str] = Counter()
    seen: set[int] = set()
    for one in objects:
        for part in gc.get_referents(one):
            if isinstance(part, bytes | bytearray | str) and id(part) not in seen:
                seen.add(id(part))
                held[_type_name(one)] += sys.getsizeof(part)
    print(f"{what}: {len(objects)} objects", file=sys.stderr)
    for name, count in counts.most_common(MOST_TYPES):
        print(f"{count:12} {name}", file=sys.stderr)
    for name, size in held.most_common(MOST_TYPES):
        print(f"{size:12} bytes in {name}", file=sys.stderr)


def _type_name(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


def _resident() -> str:
    """All, and how much of it is no file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return "/".join(fields[name].split()[0] for name in ("VmRSS", "RssAnon"))


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, _tell_memory)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _watch_frames()
    _watch_callbacks()
    sys.exit(main())
