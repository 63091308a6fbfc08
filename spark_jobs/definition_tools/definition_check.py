"""All mistakes of a definition file at once, each with its line; Spark is not started."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from spark_jobs.definition_tools.definition_file import DefinitionFile
from spark_jobs.definition_tools.toml_lines import line_of, lines_of_keys
from spark_jobs.definitions.definition import OWN_COLUMNS, SECTIONS, unknown_section
from spark_jobs.definitions.fields import near
from spark_jobs.definitions.mistakes import Mistake, mistakes
from spark_jobs.definitions.typed_records import columns_made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_jobs.definitions.mistakes import Place
    from spark_jobs.definitions.outputs import Output

_PARAMETER = re.compile(r"\$\{(\w+)\}")


def checked(path: Path) -> list[str]:
    """Return a line for each mistake of a file: FILE:LINE: KEY: what is wrong.

    SQL is Spark's to judge: jobs do so when they start. Raises OSError.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        return [f"{path}:1: not UTF-8: {error}"]
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found[1] if found else str(text.count("\n") + 1)
        return [f"{path}:{line}: not TOML: {error}"]
    lines = lines_of_keys(text)
    placed = sorted((line_of(one.place, lines), str(one)) for one in _mistakes(content))
    return [f"{path}:{line}: {words}" for line, words in placed]


def _mistakes(content: dict[str, Any]) -> Iterator[Mistake]:
    parameters = content.get("parameters", {})
    for name in sorted(set(content) - set(SECTIONS)):
        yield Mistake((name,), unknown_section(name))
    yield from _unknown_parameters(content, parameters)
    known = {name: _filled(one, parameters) for name, one in content.items() if name in SECTIONS}
    try:
        file = DefinitionFile.model_validate(known)
    except ValidationError as error:
        yield from mistakes(error, DefinitionFile)
    else:
        yield from _unknown_columns(file)


def _filled(value: Any, parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever TOML holds
    if isinstance(value, dict):
        return {key: _filled(one, parameters) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, parameters) for one in value]
    if isinstance(value, str):
        return _PARAMETER.sub(lambda found: str(parameters.get(found[1], found[1])), value)
    return value


def _unknown_parameters(value: Any, known: dict[str, Any], place: Place = ()) -> Iterator[Mistake]:  # noqa: ANN401
    if isinstance(value, str):
        for name in _PARAMETER.findall(value):
            if name not in known:
                words = f"${{{name}}} is not in [parameters]{near(name, known)}"
                yield Mistake(place, words)
        return
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, one in value.items() if isinstance(value, dict) else ():
        yield from _unknown_parameters(one, known, (*place, key))


def _unknown_columns(file: DefinitionFile) -> Iterator[Mistake]:
    """Yield names of columns that are none, where a definition wants a column and not SQL."""
    record = file.record
    made = [*record.fields, *columns_made(record), *OWN_COLUMNS]
    named: list[tuple[Place, tuple[str, ...], list[str]]] = []
    for name, aggregate in (file.aggregate.root if file.aggregate else {}).items():
        looked_up = [column for lookup in aggregate.lookups for column in lookup.columns]
        columns = [*made, *looked_up, *aggregate.columns]
        named.append((("aggregate", name, "group_by"), aggregate.group_by, columns))
    outputs: list[tuple[Place, Output]] = []
    if file.route:
        outputs += [(("route",), file.route)]
        outputs += [(("route", "routes", at), one) for at, one in enumerate(file.route.routes)]
    if file.enrich:
        made = [*made, file.enrich.into]
        outputs += [(("enrich",), file.enrich)]
    for place, output in outputs:
        named.append(((*place, "columns"), output.columns or (), made))
        named.append(((*place, "leave_out"), output.leave_out, made))
    for place, names, columns in named:
        for name in names:
            if name.lower() not in {column.lower() for column in columns}:
                yield Mistake(place, f"there is no column '{name}'{near(name, columns)}")
