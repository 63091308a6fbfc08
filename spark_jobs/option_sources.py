"""Where options come from beside flags: the environment, and a TOML file.

    SPARK_JOBS_BOOTSTRAP_SERVERS=kafka:9092      any job's --bootstrap-servers
    SPARK_JOBS_KAFKA='{"security.protocol": "SSL"}'
    SPARK_JOBS_MONTHS=1,2,12

    bootstrap_servers = "kafka:9092"             at the top: every job that has such an option,
    [archive]                                    and in its own table: this job alone
    directory = "/srv/archive"

Each value is kept with the name that a person knows its place by, for the error that names it.
"""

from __future__ import annotations

import json
import os
import tomllib
import typing
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_jobs.definitions.fields import near
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

PREFIX = "SPARK_JOBS_"


class Given(NamedTuple):
    """The value of an option, and where it was given."""

    value: Any
    place: str


def spelling(name: str) -> str:
    """Return a field's name as people write it: a `json_` cannot be called `json` in pydantic."""
    return name.removesuffix("_")


def from_environment(model: type[BaseModel]) -> dict[str, Given]:
    """Return what the environment says of the model's fields."""
    given = {}
    for name, field in model.model_fields.items():
        variable = PREFIX + spelling(name).upper()
        text = os.environ.get(variable)
        if text is not None:
            given[name] = Given(_from_text(field, variable, text), variable)
    return given


def _from_text(field: FieldInfo, variable: str, text: str) -> Any:  # noqa: ANN401 - pydantic checks
    origin = typing.get_origin(field.annotation)
    if origin is tuple:
        return [part for part in text.split(",") if part]
    if origin is not dict:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadOptionError(f"{variable}: expected a JSON object, got '{text}'") from error


def from_file(model: type[BaseModel], path: Path, job: str) -> dict[str, Given]:
    """Return what a TOML file says of the model's fields; raise `BadOptionError` if it cannot.

    A key of the job's own table must be one of its fields. A key at the top need not be: it may
    be another job's.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadOptionError(
            f"--options-file: {path} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOptionError(f"--options-file: {path}: not TOML: {error}") from error
    own = content.get(job, {})
    if not isinstance(own, dict):
        raise BadOptionError(f"{path}: {job}: expected the table [{job}], got '{own}'")
    names = {spelling(name): name for name in model.model_fields}
    unknown = sorted(set(own) - set(names))
    if unknown:
        raise BadOptionError(
            f"{path}: [{job}] {unknown[0]}: {job} has no such option{near(unknown[0], names)}"
        )
    shared = {name: value for name, value in content.items() if name in names}
    return {
        names[name]: Given(
            value, f"{path}: {name}" if name not in own else f"{path}: [{job}] {name}"
        )
        for name, value in (shared | own).items()
    }
