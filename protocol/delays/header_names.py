"""Names of the headers that mean something in topics with delays (docs/messaging.md)."""

from __future__ import annotations

from typing import Final

DELIVER_AT: Final = "deliver-at"
DELIVER_AFTER: Final = "deliver-after"
CANCEL: Final = "deliver-cancel"
"""Headers that producers set."""

SOURCE: Final = "delivery-source"
CREATED_AT: Final = "delivery-created-at"
POINT: Final = "delivery-point"
"""Headers that the broker adds to a record that has waited."""

OF_DELAYS: Final = frozenset({DELIVER_AT, DELIVER_AFTER, CANCEL, SOURCE, CREATED_AT, POINT})
"""All these headers. Other names with the same prefixes are the clients' own."""
