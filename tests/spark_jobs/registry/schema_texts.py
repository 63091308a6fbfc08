"""Schemas of the three types that tests of the registry speak of."""

from __future__ import annotations

import json
from typing import Any


def avro(*fields: Any, name: str = "Order") -> str:
    """Return a record's schema; a field is a name with its type, and a default if any."""
    described = [
        {"name": field, "type": kind, **({"default": default[0]} if default else {})}
        for field, kind, *default in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": described})


ORDER = avro(("id", "long"))
ORDER_WITH_NOTE = avro(("id", "long"), ("note", ["null", "string"], None))
ORDER_WITH_TOTAL = avro(("id", "long"), ("total", "double"))
"""Not what a reader of `ORDER`'s records can be: the total has no default."""
