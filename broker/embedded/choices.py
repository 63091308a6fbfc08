"""An argument that is one of few words. Imports nothing: the plugin is loaded with each pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def choice_named(name: str, choice: object, choices: Sequence[str]) -> str:
    """One of some words in lower case, given in any case. Raises ValueError."""
    found = choice.lower() if isinstance(choice, str) else None
    if found is None or found not in choices:
        raise ValueError(f"{name} is one of {', '.join(choices)}, and not {choice!r}")
    return found
