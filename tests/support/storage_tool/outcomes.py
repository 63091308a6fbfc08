"""Outcome of one run of a storage tool: exit code, some of its words, and all files.

Normalised: without times, without ids and salts that were drawn, lines in order, and only lines
that scripts look for.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import urlsafe_b64decode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.metadata_log.frames import decode_metadata_record, encode_metadata_record
from protocol.metadata_log.security_records import UserScramCredentialRecord
from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.support.storage_tool.cases import DIRECTORY_IDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from protocol.records.record import Record
    from tests.support.storage_tool.cases import Case

GOLDEN: Final = Path(__file__).with_name("outcomes.json")
"""Outcomes of all cases with Apache Kafka 4.4.0; test_formatting_beside_apache.py writes it."""

_SNAPSHOT_HEADER: Final = 3
_DRAWN: Final = bytes(16)
_WORDS: Final = re.compile(
    r"Formatting .*|Found .*|All of .*|  \{root\}\S*|.* (?:is not formatted\.|does not exist"
    r"|is not a directory)|\s*[a-z.]+\.version=-?\d+.*"
)
"""Lines that scripts look for."""
_DIRECTORY_ID: Final = re.compile(r"^directory\.id=([\w-]{22})$", re.MULTILINE)
_UUID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n")


class Outcome(NamedTuple):
    """One run."""

    exit_code: int
    words: list[str]
    files: dict[str, str]
    """By path: the lines of `meta.properties`, or the digest of a checkpoint's records."""


def read_golden() -> dict[str, Outcome]:
    """Outcomes with Apache Kafka, by the name of the case."""
    read = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {name: Outcome(*one) for name, one in read.items()}


def outcome_of(case: Case, root: Path, exit_code: Any, output: str) -> Outcome:
    """Outcome of a run in `root`."""
    shown = output.replace(str(root), "{root}")
    if case.arguments == ("random-uuid",):
        assert _UUID.fullmatch(shown), shown
    lines = sorted(line for line in shown.splitlines() if _WORDS.fullmatch(line))
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    identities = [path for path in paths if path.name == "meta.properties"]
    drawn = [one for one in map(_directory_id, identities) if one and one not in DIRECTORY_IDS]
    files = {}
    for path in paths:
        name = str(path.relative_to(root))
        if path in identities:
            files[name] = " ".join(_pairs(path, drawn))
        elif path.suffix == ".checkpoint":
            records = "\n".join(_records(path.read_bytes(), case, drawn))
            mode = path.stat().st_mode & 0o777
            files[name] = f"{mode:o} {sha256(records.encode()).hexdigest()[:16]}"
        elif name != "server.properties":
            files[name] = "unexpected"
    return Outcome(exit_code, lines, files)


def _directory_id(path: Path) -> str | None:
    match = _DIRECTORY_ID.search(path.read_text(encoding="utf-8"))
    return match[1] if match else None


def _pairs(path: Path, drawn: list[str]) -> Iterator[str]:
    for line in sorted(path.read_text(encoding="utf-8").splitlines()):
        if not line.startswith("#"):
            key, _, value = line.partition("=")
            yield f"{key}=drawn" if value in drawn and key == "directory.id" else line


def _records(content: bytes, case: Case, drawn: list[str]) -> Iterator[str]:
    for position, header in iterate_headers(content):
        yield repr(header._replace(crc=0, base_timestamp=0, max_timestamp=0, batch_length=0))
        for record in iterate_records(content[position : position + header.size_in_bytes]):
            value = _value(header, record, case)
            for one in drawn:
                value = value.replace(urlsafe_b64decode(f"{one}=="), _DRAWN)
            yield f"{record.offset} {record.key!r} {value!r} {record.headers!r}"


def _value(header: BatchHeader, record: Record, case: Case) -> bytes:
    """The value of a record, without times and salts that were drawn."""
    value = bytes(record.value or b"")
    if header.is_control:
        _, control_type = struct.unpack(">hh", record.key or b"")
        return value[:2] + bytes(8) + value[10:] if control_type == _SNAPSHOT_HEADER else value
    message, version = decode_metadata_record(value)
    is_given = any("salt=" in word for word in case.arguments)
    if isinstance(message, UserScramCredentialRecord) and not is_given:
        assert message.salt, "a drawn salt is not empty"
        message.salt = message.stored_key = message.server_key = b""
        return encode_metadata_record(message, version)
    return value
