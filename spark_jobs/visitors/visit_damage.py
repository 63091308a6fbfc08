"""Malformed events of a website, each with the reason it must be rejected for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spark_jobs.flights.damage import Damage, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.flights.damage import Flight


def _changed(**changes: object) -> Callable[[Flight], bytes]:
    return lambda event: json.dumps(event | changes, separators=(",", ":")).encode()


def _without(key: str) -> Callable[[Flight], bytes]:
    return lambda event: encode({name: value for name, value in event.items() if name != key})


DAMAGES = (
    Damage("cut in the middle", "not-json", lambda event: encode(event)[: len(encode(event)) // 2]),
    Damage("no value at all", "empty", lambda _event: None),
    Damage("a bot's noise", "not-utf-8", lambda event: b"\xff\xfe" + encode(event)),
    Damage("in a list", "not-an-object", lambda event: b"[" + encode(event) + b"]"),
    Damage("no visitor", "missing-key", _without("visitor")),
    Damage("an unknown key", "unknown-key", _changed(utm_source="newsletter")),
    Damage("visitor is null", "null-value", _changed(visitor=None)),
    Damage("visitor as number", "wrong-type", _changed(visitor=12)),
    Damage("negative load time", "impossible-number", _changed(load_ms=-5)),
    Damage("no such instant", "impossible-time", _changed(at="yesterday")),
    Damage("empty visitor", "no-visitor", _changed(visitor="")),
    Damage("a page without a slash", "no-page", _changed(page="javascript:void(0)")),
)
"""All kinds; used in turn, so that each occurs about equally often."""
