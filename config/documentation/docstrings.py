"""The rows' docstrings, which Python itself does not keep.

They are read from the source of the modules that hold the rows, once, on first use.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise

from config.broker import BrokerConfig
from config.groups.group import GroupConfig
from config.topic import TopicConfig


def document_broker_key(attribute: str) -> str:
    """Return the documentation of a broker key."""
    return _broker_documentation()[attribute]


def document_topic_key(attribute: str) -> str:
    """Return the documentation of a topic key."""
    return _docstrings(TopicConfig)[attribute]


def document_group_key(attribute: str) -> str:
    """Return the documentation of a group key."""
    return _docstrings(GroupConfig)[attribute]


@cache
def _broker_documentation() -> dict[str, str]:
    return {
        attribute: text
        for table in BrokerConfig.__bases__
        for attribute, text in _docstrings(table).items()
    }


@cache
def _docstrings(table: type) -> dict[str, str]:
    module = ast.parse(inspect.getsource(sys.modules[table.__module__]))
    body = next(
        statement.body
        for statement in module.body
        if isinstance(statement, ast.ClassDef) and statement.name == table.__name__
    )
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=attribute)),
                ast.Expr(value=ast.Constant(value=str(docstring))),
            ):
                found[attribute] = inspect.cleandoc(docstring)
    return found
