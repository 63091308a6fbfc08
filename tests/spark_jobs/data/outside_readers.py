"""Tables as programs without Spark read them: `deltalake`, and `pyiceberg`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


def arrow_table(directory: Path) -> pa.Table:
    """Return all rows of a table, whichever format it has."""
    if (directory / "_delta_log").is_dir():
        return DeltaTable(str(directory)).to_pyarrow_table()
    version = (directory / "metadata" / "version-hint.text").read_text()
    metadata = directory / "metadata" / f"v{version}.metadata.json"
    return StaticTable.from_metadata(str(metadata)).scan().to_arrow()


def rows_of(directory: Path, instants: str = "seconds") -> list[dict[str, Any]]:
    """Return rows as topics have them: instants as text, to the second or to `milliseconds`."""
    rows = arrow_table(directory).to_pylist()
    return [{name: _plain(value, instants) for name, value in row.items()} for row in rows]


def _plain(value: object, instants: str) -> object:
    if not isinstance(value, datetime):
        return value
    return f"{value.replace(tzinfo=None).isoformat(timespec=instants)}Z"
