"""Avro values as columns of Spark: what definitions read is the JSON text.

The one place where jobs run Python in executors. Which schema a record was written with is known
only when it is read, and a query's expressions are fixed when it starts: `from_avro` could not
follow a topic whose schema evolves. Executors need the package and fastavro, as a driver does.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.avro.decoder import Decoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.avro.avro_values import AvroValues

UNDECODABLE = "undecodable"
"""Column with reason and detail of a value that does not decode; NULL for others."""

_DECODED = "struct<text: string, reason: string, detail: string>"


def with_text(records: DataFrame, values: AvroValues) -> DataFrame:
    """Add `text`, a record's JSON or else its bytes as they are, and `undecodable`."""
    decode = F.arrow_udf(  # type: ignore[attr-defined]
        _batches(values), _DECODED
    )
    # Behind a list no filter is moved, with which the values would be decoded once more.
    decoded = records.select("*", F.inline(F.array(decode("value"))))
    problem = F.when(F.col("reason").isNotNull(), F.struct("reason", "detail"))
    text = F.coalesce("text", F.col("value").cast("string"))
    return decoded.withColumns({UNDECODABLE: problem, "text": text}).drop("reason", "detail")


def use_this_python() -> None:
    """Have Spark's local executors run the driver's Python, not whichever comes first."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _batches(values: AvroValues) -> Any:  # noqa: ANN401 - what Spark takes
    def decode(batch: pa.Array) -> pa.Array:
        found = _decoder(values).decode(batch.to_pylist())
        columns = [[getattr(one, name) for one in found] for name in ("text", "reason", "detail")]
        return pa.StructArray.from_arrays(
            [pa.array(column, pa.string()) for column in columns], ["text", "reason", "detail"]
        )

    return decode


@functools.cache
def _decoder(values: AvroValues) -> Decoder:
    """Return the one decoder of a process of an executor, which knows schemas from before."""
    from spark_jobs.avro.schema_client import SchemaClient  # noqa: PLC0415 - loads much

    return Decoder(json.loads(values.reader), values.max_bytes, SchemaClient(values.registry))
