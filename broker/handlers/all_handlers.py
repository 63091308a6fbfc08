"""Imports every module of this package, so that all handlers are in the route table."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from broker import handlers

MODULES = tuple(
    import_module(f"{handlers.__name__}.{found.name}")
    for found in pkgutil.iter_modules(handlers.__path__)
    if found.name != __name__.rpartition(".")[2]
)
"""Importing them has registered their handlers; nothing else is done with them."""
