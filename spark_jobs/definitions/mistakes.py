"""What is wrong with a definition file, in words: the key, what was expected, what was meant."""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, RootModel, ValidationError

from spark_jobs.definitions.fields import near

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]
"""The keys that lead to a value in a file, numbers in arrays."""


class Mistake(NamedTuple):
    """One thing that is wrong."""

    place: Place
    words: str

    def __str__(self) -> str:
        path = ".".join(map(str, self.place))
        return f"{path}: {self.words}" if path else self.words


def mistakes(error: ValidationError, model: type[BaseModel], place: Place = ()) -> list[Mistake]:
    """Return all that pydantic found wrong with a table of the file, which stands at `place`."""
    found = []
    errors = error.errors()
    for one in errors:
        if one["type"] == "too_short" and any(one["loc"] == e["loc"][:-1] for e in errors):
            continue  # its items were wrong, and so do not count
        words = str(one["msg"]).removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            known = _keys(model, one["loc"][:-1])
            hint = near(str(one["loc"][-1]), known) or f"; known are {', '.join(known)}"
            found.append(Mistake((*place, *one["loc"]), f"unknown key{hint}"))
        elif one["type"] == "missing":
            found.append(Mistake((*place, *one["loc"]), "is missing"))
        else:
            got = "" if isinstance(one["input"], dict | list) else f", got '{one['input']}'"
            found.append(Mistake((*place, *_path(one["loc"])), words + got))
    return found


def _path(loc: Place) -> Iterator[str | int]:
    """Yield the keys of a place, without the names that pydantic has for the cases of a union."""
    for step in loc:
        if isinstance(step, int) or step.isidentifier() or "-" in step:
            if step not in {"int", "float", "str", "datetime", "date"}:
                yield step
        elif "[" not in step and "(" not in step:
            yield step


def _keys(model: type[BaseModel], loc: Place) -> list[str]:
    """Return the keys that the table at `loc` may have."""
    found: Any = model
    for step in loc:
        found = _inside(found, step)
    return list(found.model_fields) if _is_model(found) else []


def _inside(annotation: Any, step: str | int) -> Any:  # noqa: ANN401 - types of Python
    if _is_model(annotation):
        if issubclass(annotation, RootModel):
            return _inside(annotation.model_fields["root"].annotation, step)
        field = annotation.model_fields.get(str(step))
        return _plain(field.annotation) if field else None
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is dict:
        return _plain(arguments[1])
    return _plain(arguments[0]) if arguments else None


def _plain(annotation: Any) -> Any:  # noqa: ANN401 - types of Python
    """Return a type without what pydantic is told beside it, and without None."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _plain(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return _plain(next(one for one in typing.get_args(annotation) if one is not type(None)))
    return annotation


def _is_model(annotation: Any) -> bool:  # noqa: ANN401 - types of Python
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
