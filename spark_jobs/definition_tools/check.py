"""Check definition files: all mistakes at once, each with its line; without Spark or a broker.

    python -m spark_jobs check orders.toml              exit code 2 when something is wrong
    python -m spark_jobs check --schema > definition.schema.json

The schema is for editors that complete and underline TOML: a first line in a definition,
`#:schema definition.schema.json`, names it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from spark_jobs.definition_tools.definition_check import checked
from spark_jobs.definition_tools.definition_file import json_schema
from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError, exit_code_of
from spark_jobs.options import OptionParser

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "check"


def main(argv: Sequence[str] | None = None) -> int:
    """Check the files that are named; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    parser = OptionParser(prog=NAME, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="definition to check")
    parser.add_argument("--schema", action="store_true", help="print a JSON Schema for editors")
    given = parser.parse_args(argv)
    if given.schema:
        print(json.dumps(json_schema(), indent=2))
        return 0
    if not given.files:
        raise BadOptionError("name a definition to check, or --schema (see --help)")
    return max(_checked(path) for path in given.files)


def _checked(path: Path) -> int:
    try:
        found = checked(path)
    except OSError as error:
        raise BadOptionError(f"{path} cannot be read: {(error.strerror or '').lower()}") from error
    for line in found:
        print(line, file=sys.stderr)
    if found:
        return EXIT_BAD_OPTION
    print(f"{path}: nothing is wrong; SQL is checked when a job starts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
