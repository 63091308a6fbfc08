"""Origin of a leader append, and the facts about a batch that its bytes do not carry."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.validation import NEWEST_VERSION

if TYPE_CHECKING:
    from storage.producer.verification_guards import VerificationGuard


class AppendOrigin(Enum):
    """Origin of an append; decides which checks apply."""

    CLIENT = "client"
    """A producer: everything is checked."""
    CHECKED = "checked"
    """A producer as well; the batch as such has been checked before, and then recompressed."""
    COORDINATOR = "coordinator"
    """This broker: group and transaction records, and transaction markers."""


class AppendSource(NamedTuple):
    """Properties passed along with a batch; the constants below cover most appends."""

    origin: AppendOrigin = AppendOrigin.CLIENT
    api_version: int = NEWEST_VERSION
    """Version of Produce, which decides on the checks of a client's batch."""
    guard: VerificationGuard | None = None
    """Proof that the coordinator knows the transaction that the batch begins (KIP-890)."""
    transaction_version: int = 0
    """Of a marker: from 2 on its epoch is one above that of the transaction's records."""


FROM_CLIENT: Final = AppendSource()
FROM_RECOMPRESSION: Final = AppendSource(AppendOrigin.CHECKED)
FROM_COORDINATOR: Final = AppendSource(AppendOrigin.COORDINATOR)
