"""Who appends to a log as its leader, and what is known of a batch beside its bytes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.validation import NEWEST_VERSION

if TYPE_CHECKING:
    from storage.producer.verification_guards import VerificationGuard


class AppendOrigin(Enum):
    """Who appends, which decides what is checked."""

    CLIENT = "client"
    """A producer: everything is checked."""
    CHECKED = "checked"
    """A producer as well; the batch as such has been checked before, and then recompressed."""
    COORDINATOR = "coordinator"
    """This broker: group and transaction records, and transaction markers."""


class AppendSource(NamedTuple):
    """What comes with a batch; the constants below are what most appends need."""

    origin: AppendOrigin = AppendOrigin.CLIENT
    api_version: int = NEWEST_VERSION
    """Of Produce: by what it allows a client's batch is checked."""
    guard: VerificationGuard | None = None
    """Shows that the coordinator knows of the transaction that the batch begins (KIP-890)."""
    transaction_version: int = 0
    """Of a marker: from 2 on its epoch is one above that of the transaction's records."""


FROM_CLIENT: Final = AppendSource()
FROM_RECOMPRESSION: Final = AppendSource(AppendOrigin.CHECKED)
FROM_COORDINATOR: Final = AppendSource(AppendOrigin.COORDINATOR)
