"""95-bit hashes of many keys at once, by a function drawn at random for each job.

Keys are distinguished by their hashes alone, and they come from clients: no client may be able to
write two keys with the same hash. A function that is unknown beforehand prevents that. It is
multilinear (Carter and Wegman; Dietzfelbinger's shift instead of a prime): with the words x[1..n]
of 32 bits of a key, the last one filled up with zeros, its length l, and coefficients a[0..n+1] of
64 random bits,

    h = (a[0] + a[1] l + a[2] x[1] + ... + a[n+1] x[n])  mod 2^64, the upper 32 bits of it

is the same for two given keys with a chance of 2^-32, whichever they are: there is a word, or the
length, in which they differ, and its coefficient alone makes h of the difference anything equally
often. Three functions with coefficients of their own are 96 bits, of which one is given up, so
that 0 is no hash:

    high   |h1, 32 bits       |h2, 31 bits     1|          low   |h3, 32 bits       |

That two of five million keys share a hash has a chance of one in 10^15. The coefficients are drawn
from the seed by SHAKE-256. Long keys are hashed one by one by BLAKE2, with a key of its own from
there: each would need as many coefficients as it has words.
"""

from __future__ import annotations

from hashlib import blake2s, shake_256
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES: Final = 4
MOST_WORDS: Final = 64
"""Keys of more are hashed one by one, at a microsecond and more for each."""
PADDING_BYTES: Final = WORD_BYTES
"""Bytes that must follow the last key: its last word is read whole."""

_FUNCTIONS: Final = 3
_COEFFICIENTS: Final = 2 + MOST_WORDS
_LONG_KEY_BYTES: Final = 32
_UPPER: Final = np.uint64(0xFFFF_FFFF_0000_0000)
_HALF: Final = np.uint64(32)
_NOT_ZERO: Final = np.uint64(1)
_LAST_WORDS: Final = np.array([0xFFFF_FFFF, 0xFF, 0xFFFF, 0xFF_FFFF], "<u4")
"""Mask of the bytes of a key's last word that belong to it, by its length modulo 4."""


class KeyHashes(NamedTuple):
    """Hashes of some keys, as two columns."""

    high: NDArray[np.uint64]
    """Never 0."""
    low: NDArray[np.uint32]

    def of(self, which: NDArray[np.int64]) -> KeyHashes:
        """Some of them."""
        return KeyHashes(self.high.take(which), self.low.take(which))


class KeyHasher:
    """The function of one job."""

    def __init__(self, seed: bytes) -> None:
        """`seed` must be random, and secret."""
        size = 8 * _FUNCTIONS * _COEFFICIENTS
        drawn = shake_256(seed).digest(size + _LONG_KEY_BYTES)
        self._coefficients = np.frombuffer(drawn[:size], "<u8").reshape(_COEFFICIENTS, _FUNCTIONS)
        self._long_key = drawn[size:]

    def hashes(
        self, octets: bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> KeyHashes:
        """Of the keys of `sizes`, none negative, at `starts` of `octets`."""
        words = np.minimum((sizes + (WORD_BYTES - 1)) // WORD_BYTES, MOST_WORDS + 1)
        counts = np.bincount(words)
        kinds = np.flatnonzero(counts).tolist()
        if len(kinds) == 1:
            return self._alike(octets, starts, sizes, kinds[0])
        found = KeyHashes(np.empty(len(starts), np.uint64), np.empty(len(starts), np.uint32))
        for kind in kinds:
            which = np.flatnonzero(words == kind)
            high, low = self._alike(octets, starts.take(which), sizes.take(which), kind)
            found.high[which] = high
            found.low[which] = low
        return found

    def _alike(
        self, octets: bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], words: int
    ) -> KeyHashes:
        """Of keys of as many words."""
        if words > MOST_WORDS:
            return self._long(octets, starts, sizes)
        terms = np.empty((len(starts), 1 + words), np.uint64)
        terms[:, 0] = sizes
        if words:
            terms[:, 1:] = _words(octets, starts, sizes, words)
        sums = terms @ self._coefficients[1 : 2 + words] + self._coefficients[0]
        first, second, third = sums.T
        high = (first & _UPPER) | (second >> _HALF) | _NOT_ZERO
        return KeyHashes(high, (third >> _HALF).astype(np.uint32))

    def _long(
        self, octets: bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> KeyHashes:
        key = self._long_key
        digests = b"".join(
            [
                blake2s(octets[start : start + size], digest_size=12, key=key).digest()
                for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            ]
        )
        columns = np.frombuffer(digests, [("high", "<u8"), ("low", "<u4")])
        return KeyHashes(columns["high"] | _NOT_ZERO, columns["low"].copy())


def _words(
    octets: bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], words: int
) -> NDArray[np.uint32]:
    """The words of keys of as many, a row for each key."""
    size = words * WORD_BYTES
    everywhere = np.ndarray((len(octets) - size + 1,), f"V{size}", octets, strides=(1,))
    rows = everywhere[starts].view("<u4").reshape(len(starts), words)
    rows[:, -1] &= _LAST_WORDS.take(sizes % WORD_BYTES)
    return rows
