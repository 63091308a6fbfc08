"""kcat, the Debian package: keys and values as text lines, times as the broker's clock."""

from __future__ import annotations

import json
import shutil
import subprocess

from tests.interop.clients.record import Placed, Record, Sending, Settings

NAME = "kcat"
TIMEOUT_SECONDS = 240
SEPARATOR = "\t"


def run(*arguments: str, stdin: str = "") -> str:
    """Run kcat and return its standard output; a non-zero exit raises with its error output."""
    kcat = shutil.which("kcat")
    assert kcat is not None, "`kcat` is missing: install the Debian package kcat"
    outcome = subprocess.run(
        [kcat, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, f"kcat {arguments}: {outcome.stderr}"
    return outcome.stdout


def produce(
    bootstrap: str,
    topic: str,
    records: list[Record],
    sending: Sending,
    settings: Settings | None = None,
) -> list[Placed] | None:
    """Send all `records` to one partition with the headers of the first; None comes back."""
    lines = "".join(f"{_text(r.key)}{SEPARATOR}{_text(r.value)}\n" for r in records)
    headers = [
        word for name, value in records[0].headers for word in ("-H", f"{name}={value.decode()}")
    ]
    run(
        *("-b", bootstrap, "-P", "-t", topic, "-p", str(records[0].partition), "-K", SEPARATOR),
        *("-z", sending.codec, "-X", f"acks={sending.acks}", *headers),
        *_options(settings),
        stdin=lines,
    )
    return None


def read(bootstrap: str, topic: str, count: int, settings: Settings | None = None) -> list[Record]:
    """Return the first `count` records of `topic`, by partition and offset."""
    output = run(
        *("-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-c", str(count), "-q", "-J"),
        *("-X", "check.crcs=true", *_options(settings)),
    )
    records = [_record(json.loads(line)) for line in output.splitlines()]
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _options(settings: Settings | None) -> list[str]:
    return [word for key, value in (settings or {}).items() for word in ("-X", f"{key}={value}")]


def _record(row: dict[str, object]) -> Record:
    flat = [str(word) for word in row.get("headers", [])]  # type: ignore[attr-defined]
    return Record(
        partition=int(str(row["partition"])),
        key=_bytes(row["key"]),
        value=_bytes(row["payload"]),
        timestamp_ms=int(str(row["ts"])),
        headers=tuple(
            (name, value.encode()) for name, value in zip(flat[::2], flat[1::2], strict=True)
        ),
        offset=int(str(row["offset"])),
    )


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode()


def _bytes(value: object) -> bytes | None:
    return None if value is None else str(value).encode()
