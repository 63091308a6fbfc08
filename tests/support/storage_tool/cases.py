"""The cases of `cases.toml`: a command line, a property file, and directories as they were."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY_IDS: Final = (
    "Wd5U2HhR-pqiYcbCZ0UuEA",
    "JEXY6aqzQY-32P5TStzaFg",
    "MvDxzVmcRsaTz33bUuRU6A",
)
"""Ids that are given; all others are drawn."""
_NAMES: Final = {
    "cluster": CLUSTER,
    "other": "MkU3OEVBNTcwNTJENDM2Qk",
    **{f"id{number}": one for number, one in enumerate(DIRECTORY_IDS, 1)},
    "salt": 'salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="',
    "salted": 'saltedpassword="mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE="',
}
_COMMON: Final = {
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "{root}/one",
}
_DYNAMIC: Final = {**_COMMON, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
BASES: Final[Mapping[str, Mapping[str, str]]] = {
    "static": {
        **_COMMON,
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    },
    "controller": {
        **_DYNAMIC,
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:9093",
    },
    "broker": {
        **_DYNAMIC,
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
    },
}
_FEATURE_NAMES: Final = (
    *("kraft.version", "transaction.version", "group.version", "share.version"),
    *("eligible.leader.replicas.version", "streams.version", "nosuch.version"),
)
_FILE: Final = "{root}/server.properties"
_TABLE: Final = Path(__file__).with_name("cases.toml")
_NAME: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Case:
    """One command line on one set of directories."""

    name: str
    arguments: tuple[str, ...]
    properties: Mapping[str, str]
    found: Mapping[str, str | None]
    """`meta.properties` by directory before the run, None for a directory without it."""

    def prepare(self, root: Path) -> list[str]:
        """Write the property file and the directories; returns the command line."""
        root.mkdir(parents=True)
        lines = (f"{key}={_filled(value, root)}\n" for key, value in self.properties.items())
        (root / "server.properties").write_text("".join(lines))
        for name, content in self.found.items():
            (root / name).mkdir()
            if content is not None:
                (root / name / "meta.properties").write_text(content)
        return [_filled(word, root) for word in self.arguments]


def read_cases() -> dict[str, list[Case]]:
    """All cases, by their group."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {group: [_case(one) for one in entries] for group, entries in table.items()}


def drawn_case(random: Random) -> Case:
    """A command line of `format`, of parts that mostly fit together."""
    base = random.choice(tuple(BASES))
    voters = random.choice(
        (
            f"1@a.example:9093:{DIRECTORY_IDS[0]}",
            f"2@b.example:9094:{DIRECTORY_IDS[1]},1@[::1]:9093:{DIRECTORY_IDS[0]}",
            f"2@b.example:9094:{DIRECTORY_IDS[1]}",
        )
    )
    quorums: dict[str, tuple[tuple[str, ...], ...]] = {
        "static": ((), ("-N",)),
        "controller": (("-s",), ("-N",), ("-I", voters)),
        "broker": ((), ("-N",), ("-I", voters)),
    }
    arguments = list(random.choice(quorums[base if random.randrange(8) else "controller"]))
    if random.randrange(2):
        release = random.choice(("3.3", "3.5-IV1", "3.9", "4.0-IV1", "4.1", "4.2", "4.3.1", "4.4"))
        arguments += ["-r", release]
    for name in random.sample(_FEATURE_NAMES, random.choice((0, 0, 1, 2))):
        arguments += ["-f", f"{name}={random.randrange(3)}"]
    if random.randrange(4) == 0:
        arguments += ["-S", "SCRAM-SHA-256=[name=alice,password=x,{salt}]"]
    if random.randrange(3):
        arguments.append("-g")
    directories = {"log.dirs": random.choice(("{root}/one", "{root}/two,{root}/one"))}
    if random.randrange(4) == 0:
        directories["metadata.log.dir"] = random.choice(("{root}/one", "{root}/three"))
    formatted = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n"
    found = random.sample(("one", "two", "three"), random.choice((0, 0, 0, 1, 2)))
    return _case(
        {
            "name": "drawn",
            "format": arguments,
            "base": base,
            "set": directories,
            "found": {name: random.choice((formatted, formatted, "-")) for name in found},
        }
    )


def _case(entry: Mapping[str, Any]) -> Case:
    properties = {**BASES[entry.get("base", "static")], **entry.get("set", {})}
    for key in entry.get("without", ()):
        del properties[key]
    found = entry.get("found", {})
    return Case(
        entry["name"],
        tuple(map(_named, _command_line(entry))),
        properties,
        {name: None if text == "-" else _named(text) for name, text in found.items()},
    )


def _command_line(entry: Mapping[str, Any]) -> tuple[str, ...]:
    if "line" in entry:
        return tuple(entry["line"])
    if "info" in entry:
        return ("info", "-c", _FILE, *entry["info"])
    return ("format", "-c", _FILE, "-t", CLUSTER, *entry["format"])


def _named(text: str) -> str:
    return _NAME.sub(lambda match: _NAMES.get(match[1], match[0]), text)


def _filled(text: str, root: Path) -> str:
    return _named(text).replace("{root}", str(root))
