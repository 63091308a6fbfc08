"""Files with secrets that every user of the machine may read: reported at the start."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from config.catalogue import BROKER_KEYS
from config.precedence import unprefixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_FILES_OF_KEYS = ("ssl.keystore.location",)
"""Keys that name a file with a private key."""


def is_secret(name: str) -> bool:
    """Return whether the value of a key, also of one listener, may never be shown."""
    known = BROKER_KEYS.get(unprefixed(name))
    return known is not None and known.key.is_sensitive


def names_secret_file(name: str) -> bool:
    """Return whether the value of a key is the path of a file with secrets."""
    return unprefixed(name) in _FILES_OF_KEYS


def stated_secrets(texts: Mapping[str, str]) -> list[str]:
    """Return the keys whose secrets stand in these texts themselves."""
    return sorted(name for name, text in texts.items() if text.strip() and is_secret(name))


def readable_by_others(paths: Iterable[Path]) -> list[Path]:
    """Return the files that anybody can open: neither they nor a directory above forbids it."""
    return sorted(path for path in set(paths) if _is_open(path))


def _is_open(path: Path) -> bool:
    try:
        path = path.resolve(strict=True)
        if not path.stat().st_mode & stat.S_IROTH:
            return False
        return all(above.stat().st_mode & stat.S_IXOTH for above in path.parents)
    except OSError:
        return False  # a missing file is reported by its reader
