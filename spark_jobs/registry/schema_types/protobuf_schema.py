"""Protobuf: compiled by `protoc`, as `.proto` text or as a descriptor in base64.

Java's serialisers register the text, Python's the descriptor; each is answered as it came, and as
a descriptor when a client asks for `format=serialized`.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from spark_jobs.registry.schema_types.protobuf_compatibility import differences
from spark_jobs.registry.schema_types.schema_type import (
    InvalidSchemaError,
    ParsedSchema,
    SchemaType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MAIN = "schema.proto"
TIMEOUT_SECONDS = 20


def parse(text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Read a Protobuf schema whose references are named as it imports them."""
    file = _descriptor(text)
    if file is None or references:
        files = _compiled(text, references)
        file = next(found for found in files.file if found.name == MAIN)
    file.ClearField("source_code_info")
    file.name = ""
    identity = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
    return ParsedSchema(text, identity, text, file)


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> list[str]:
    """Say why `reader` does not read what `writer` wrote, by Confluent's rules."""
    return differences(reader.model, writer.model)


def serialised(schema: ParsedSchema) -> str:
    """Return the descriptor in base64."""
    return schema.identity


PROTOBUF = SchemaType(parse, incompatibilities)


def _descriptor(text: str) -> FileDescriptorProto | None:
    """Return a descriptor given in base64; None for a text."""
    try:
        raw = base64.b64decode(text.strip(), validate=True)
        return FileDescriptorProto.FromString(raw)
    except (binascii.Error, DecodeError, ValueError):
        return None


def _compiled(text: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """Have `protoc` compile, in a process of its own: it ends the process for some mistakes."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ready = FileDescriptorSet()
        for referred, content in {**references, MAIN: text}.items():
            found = _descriptor(content)
            if found is None:
                _place(directory, referred).write_text(content, encoding="utf-8")
            else:
                found.name = referred
                ready.file.append(found)
        outcome = _protoc(directory, ready)
        if outcome.returncode != 0:
            words = outcome.stderr.strip().partition("\n")[0] or "protoc refuses it"
            raise InvalidSchemaError(words)
        return FileDescriptorSet.FromString((directory / "out").read_bytes())


def _protoc(directory: Path, ready: FileDescriptorSet) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "grpc_tools.protoc", "--include_imports"]
    command += [f"--descriptor_set_out={directory / 'out'}", f"--proto_path={directory}"]
    if ready.file:
        (directory / "in").write_bytes(ready.SerializeToString())
        command.append(f"--descriptor_set_in={directory / 'in'}")
    try:
        return subprocess.run(  # noqa: S603 - our own Python
            [*command, MAIN],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            cwd=directory,
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidSchemaError("protoc does not come to an end") from error


def _place(directory: Path, name: str) -> Path:
    """Return the file of a name that a schema imports, inside the directory."""
    path = directory if "\0" in name else (directory / name).resolve()
    if not path.is_relative_to(directory.resolve()) or path == directory.resolve():
        raise InvalidSchemaError(f"'{name}' is no name of a file to import")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
