"""Hashes of keys that stand anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.compaction.columns.key_hashes import PADDING_BYTES, KeyHasher
from tests.storage.compaction.compacting import SEED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.compaction.columns.key_hashes import KeyHashes


def hashes_of(keys: Iterable[bytes], seed: bytes = SEED) -> KeyHashes:
    """Return the hashes of `keys`, with other bytes before, between and behind them."""
    pieces = [*keys]
    sizes = np.array([len(key) for key in pieces], np.int64)
    starts = 1 + np.cumsum(sizes + 1) - (sizes + 1)
    octets = b"".join(b"\xff" + key for key in pieces) + b"\xff" * PADDING_BYTES
    return KeyHasher(seed).hashes(octets, starts, sizes)
