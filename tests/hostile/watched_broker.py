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
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.__main__ import main
from broker.requests.dispatch import Dispatcher
from compiled.activation import CHOICE
from protocol.headers import parse_request_header
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

HELD: Final = "HELD"
TOLD_MS: Final = 20.0
MEMORY: Final = "MEMORY"
MOST_LEFT: Final = 60


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
            _tell(spent_ms, f"callback {_named(handle)}"[:300])

    asyncio.Handle._run = timed  # type: ignore[assignment,method-assign]


def _named(handle: asyncio.Handle) -> str:
    """The callback; of a task which one, if Python can tell."""
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else repr(handle)


class _CollectorClock:
    """Tells of garbage collections that take long: they come whenever their time has come."""

    def __init__(self) -> None:
        self._began = 0.0

    def __call__(self, phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        spent_ms = (time.thread_time() - self._began) * 1000
        if spent_ms >= TOLD_MS:
            _tell(spent_ms, f"garbage of generation {about['generation']}, {about['collected']}")


def _shown(frame: memoryview) -> str:
    try:
        header, _ = parse_request_header(frame)
    except DecodeError as error:
        return str(error)
    return f"{header.api_key} v{header.api_version} number {header.correlation_id}"


def _tell(spent_ms: float, what: str) -> None:
    print(f"{HELD} {spent_ms:.0f} ms: {what}", file=sys.stderr, flush=True)


def _tell_memory(*_: object) -> None:
    """A line `MEMORY`: what is resident before and after garbage is collected and heaps trimmed.

    With it, what the garbage was, since it would have kept what requests had until its time came:
    types, and where the exceptions among it were raised.
    """
    resident = [_resident()]
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    garbage = gc.garbage[:]
    gc.set_debug(0)
    gc.garbage.clear()
    told = {
        "garbage": dict(Counter(map(_type_name, garbage)).most_common()),
        "raised": dict(Counter(map(_place, filter(_is_exception, garbage))).most_common()),
    }
    del garbage
    gc.collect()
    resident.append(_resident())
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    resident.append(_resident())
    told["left"] = _left()
    print(f"{MEMORY} {json.dumps({'resident': resident, **told})}", file=sys.stderr, flush=True)


def _left() -> dict[str, int]:
    """Return the largest types in bytes, with the texts, bytes and numbers that they hold."""
    gc.unfreeze()
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    for one in gc.get_objects():
        name = _type_name(one)
        sizes[name] += sys.getsizeof(one)
        for part in gc.get_referents(one):
            if not gc.is_tracked(part) and id(part) not in seen:
                seen.add(id(part))
                sizes[f"{_type_name(part)} in {name}"] += sys.getsizeof(part)
    return dict(sizes.most_common(MOST_LEFT))


def _is_exception(one: object) -> bool:
    return isinstance(one, BaseException)


def _place(error: Any) -> str:
    calls = traceback.extract_tb(error.__traceback__)
    names = [f"{Path(call.filename).stem}.{call.name}" for call in calls]
    return f"{type(error).__name__} in {' > '.join(names)}"


def _type_name(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


def _resident() -> int:
    """In bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, _tell_memory)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    gc.callbacks.append(_CollectorClock())
    _watch_frames()
    _watch_callbacks()
    os.environ[CHOICE] = "no"  # compiled classes let nobody replace their methods
    sys.exit(main())
