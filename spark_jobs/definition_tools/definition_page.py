"""Write docs/definitions.md: `python -m spark_jobs.definition_tools.definition_page FILE`.

All keys, types and defaults are those of the models that read definitions; what they are is in the
docstrings there.
"""

from __future__ import annotations

import datetime as dt
import sys
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.definition_tools.definition_file import DefinitionFile
from spark_jobs.definitions.definition import Record, Rule, Table
from spark_jobs.definitions.fields import TYPES, Field
from spark_jobs.definitions.log_formats import Format, LogSection
from spark_jobs.definitions.outputs import Output
from spark_jobs.definitions.routes import Route, RouteSection
from spark_jobs.definitions.window_aggregates import Aggregate, Lookup
from spark_jobs.jobs.enrich import EnrichSection
from spark_jobs.report.report_sources import ReportSection
from spark_jobs.retry.retry_records import RetrySection
from spark_jobs.visitors.visitor_sessions import ActivitySection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

SECTIONS: dict[str, type[BaseModel]] = {
    "[record]": Record,
    "[record.fields]": Field,
    "[[record.tables]]": Table,
    "[[record.rules]]": Rule,
    "[route]": RouteSection,
    "[[route.routes]]": Route,
    "[aggregate.NAME]": Aggregate,
    "[[aggregate.NAME.lookups]]": Lookup,
    "[enrich]": EnrichSection,
    "[activity]": ActivitySection,
    "[logs]": LogSection,
    "[[logs.formats]]": Format,
    "[retry]": RetrySection,
    "[report]": ReportSection,
}
"""Each table of a definition, by the header it has in a file."""

MARK = "<!-- Written by make reference from here on. -->"
"""What stands above it on the page is written by hand."""


def render(page: str) -> str:
    """Return the page with all that is below the mark written anew."""
    lines = [page.partition(MARK)[0] + MARK, "", "## Types", ""]
    lines += ["| type | value in JSON |", "|---|---|"]
    lines += [f"| `{name}` | {words} |" for name, words in TYPES.items()]
    lines += ["", "## Sections", "", "| section | what it says |", "|---|---|"]
    for name, field in DefinitionFile.model_fields.items():
        lines.append(f"| `[{name}]` | {field.description} |")
    for header, model in SECTIONS.items():
        lines += ["", f"### {header}", ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|", *_rows(model)]
    return "\n".join(lines) + "\n"


def _rows(model: type[BaseModel]) -> Iterator[str]:
    own = set(Output.model_fields) if model is Route else set()
    for name, field in model.model_fields.items():
        words = " ".join((field.description or "").split()).replace("|", "\\|")
        if name in own:
            words = "as in [route], for this route"
        yield f"| `{name}` | {_type(field.annotation)} | {_default(field)} | {words} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if default in (None, (), "") or default == {}:
        return ""
    if isinstance(default, tuple):
        return ", ".join(f"`{one}`" for one in default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(annotation: Any) -> str:  # noqa: ANN401 - types of Python
    """Return a type in the words of TOML."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    inner = [_type(one) for one in arguments if one not in {type(None), ...} and _is_type(one)]
    if origin is typing.Literal:
        return " or ".join(f'`"{one}"`' for one in arguments)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(dict.fromkeys(inner))
    if inner:
        kind = {dict: "table of ", tuple: "array of "}.get(origin, "")
        return kind + inner[-1 if origin is dict else 0]
    return _NAMES.get(annotation) or _section(annotation)


_NAMES = {str: "text", bool: "boolean", int: "integer", float: "number"}
_NAMES |= dict.fromkeys((dt.datetime, dt.date), "time")


def _is_type(annotation: Any) -> bool:  # noqa: ANN401 - types of Python, or what pydantic checks
    return isinstance(annotation, type) or typing.get_origin(annotation) is not None


def _section(model: type[BaseModel]) -> str:
    header = next((header for header, one in SECTIONS.items() if one is model), "table")
    return f"`{header}`"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")
