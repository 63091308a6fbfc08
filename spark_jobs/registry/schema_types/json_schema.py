"""JSON Schema: checked against its metaschema by `jsonschema`, compared by `json_compatibility`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jsonschema import SchemaError
from jsonschema.validators import validator_for

from spark_jobs.registry.schema_types.json_compatibility import differences
from spark_jobs.registry.schema_types.schema_type import (
    InvalidSchemaError,
    ParsedSchema,
    SchemaType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse(text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Read a JSON Schema of the draft that its `$schema` names, the latest when it names none."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict | bool):
            raise InvalidSchemaError("expected an object, true or false")
        validator_for(document).check_schema(document)  # type: ignore[arg-type]
        known = {name: json.loads(referred) for name, referred in references.items()}
    except SchemaError as error:
        raise InvalidSchemaError(f"{error.json_path}: {error.message}") from error
    except RecursionError as error:
        raise InvalidSchemaError("nested too deeply") from error
    except ValueError as error:
        raise InvalidSchemaError(str(error)) from error
    canonical = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    sorted_text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return ParsedSchema(canonical, sorted_text, sorted_text, (document, known))


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> list[str]:
    """Say which values that `writer` takes `reader` may refuse."""
    try:
        return differences(*reader.model, *writer.model)
    except RecursionError:
        return ["TYPE_CHANGED: nested too deeply to compare"]


JSON = SchemaType(parse, incompatibilities)
