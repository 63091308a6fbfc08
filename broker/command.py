"""The command of an installation: runs a broker, or what its first argument names.

    kafka-broker-python --config server.properties    as python -m broker
    kafka-broker-python node --config my.properties   as python -m broker.node
    kafka-broker-python compiled build                as python -m compiled build

Each room of the broker with a `__main__` has a word: its name, with hyphens.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from broker.__main__ import leave
from broker.__main__ import main as serve
from compiled.__main__ import main as compiled
from config.machine.own_program import COMMAND, word_of

COMPILED = "compiled"
EXIT_USAGE = 2
"""As argparse ends a process whose command line is wrong."""


def main() -> None:
    """Run, and end the process."""
    word, rest = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if word == COMPILED:
        sys.exit(compiled(rest, f"{COMMAND} {COMPILED}"))
    room = words().get(word)
    if room is None:
        if word and not word.startswith("-"):
            sys.exit(_unknown(word))
        leave(serve(sys.argv[1:], words=(*words(), COMPILED)))
    module = importlib.import_module(f"{__package__}.{room}.__main__")
    sys.exit(module.main(rest))


def _unknown(word: str) -> int:
    known = ", ".join((*words(), COMPILED))
    text = f"there is no '{word}'; there are: {known}, and --config for a broker"
    sys.stderr.write(f"{COMMAND}: {text}\n")
    return EXIT_USAGE


def words() -> dict[str, str]:
    """Words that may come first, and the rooms that they stand for."""
    found = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__main__.py"))
    return {word_of(room): room for room in found}
