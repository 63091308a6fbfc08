"""Tables as programs without Spark read them: `deltalake`, and `pyiceberg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
