"""Write docs/clients.md: `python -m tests.support.documents.clients_page docs/clients.md`.

A client counts as tried where a test imports it, a framework where a test or an example does.
Versions are those that requirements/, `tests.support.jars` and `go.mod` pin.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import go_programs, jars
from tests.support.tools import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = jars.REPOSITORY
INTEROP = ROOT / "tests" / "interop"

CLIENTS = {
    "confluent-kafka (librdkafka)": ("confluent-kafka", {"confluent_kafka", "confluent"}),
    "kafka-python": ("kafka-python", {"kafka", "kafka_python"}),
    "aiokafka": ("aiokafka", {"aiokafka", "aio"}),
    "kcat (librdkafka)": (None, {"kcat"}),
    "franz-go": ("github.com/twmb/franz-go", {"franz_go"}),
}
"""By name: the package with its version, and the import of tests that use it."""

WRAPPERS = ("tests.interop.clients", "tests.interop.go")
"""Packages whose modules are named after the client that they import."""

FRAMEWORKS = {
    "AnyIO": ("anyio", "anyio"),
    "Django": ("django", "django"),
    "FastAPI": ("fastapi", "fastapi"),
    "Faust": ("faust", "faust-streaming"),
    "Hypothesis": ("hypothesis", "hypothesis"),
    "pytest-asyncio": ("pytest_asyncio", "pytest-asyncio"),
    "pytest-xdist": ("xdist", "pytest-xdist"),
    "Quix Streams": ("quixstreams", "quixstreams"),
    "Spark": ("pyspark", "pyspark"),
    "uvloop": ("uvloop", "uvloop"),
}
"""The module that is imported, and the package that has it."""

PLACES = (
    "docs/testing.md",
    "examples/*",
    "spark_jobs",
    "tests/broker/embedded",
    "tests/interop/embedded",
)
"""Places that use frameworks as a user does, not only to write tests."""

PAGES = frozenset({".md"})
"""Suffixes of pages, whose blocks of Python the tests run."""

SUBJECTS = {
    "clients": "producing, consuming, administration",
    "clusters": "clusters and their faults",
    "coordinators": "groups",
    "documents": "this documentation",
    "embedded": "brokers inside tests",
    "go": "programs in Go",
    "hostility": "hostile neighbours",
    "logs": "logs, compaction, retention",
    "metadata_log": "the metadata log",
    "messaging": "delays and retries",
    "security": "TLS, SASL, ACLs, quotas",
    "streams": "streams groups",
    "tools": "beside Apache's tools",
    "transactions": "transactions",
    "workloads": "load under kills",
}
"""Subjects of the packages in tests/interop."""

INTRODUCTION = """\
# Clients and frameworks

What the tests run against the broker, in which version, and with what. A client that is not here
will most likely work too, but nobody has tried. This page is written by `make reference`, from the
tests and the versions that they pin.

"""


def render() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, "## Clients\n\n", *_clients()]
    parts += ["\n## Java clients\n\n", *_java()]
    parts += ["\n## Apache Kafka's tools\n\n", *_tools()]
    parts += ["\n## Frameworks\n\n", *_frameworks()]
    return "".join(parts)


def _clients() -> Iterable[str]:
    yield "| client | version | tried with |\n|---|---|---|\n"
    used = {path: _imported(path) for path in sorted(INTEROP.rglob("test_*.py"))}
    for name, (package, modules) in CLIENTS.items():
        users = [path for path, imported in used.items() if imported & modules]
        rooms = {path.relative_to(INTEROP).parts[0] for path in users}
        subjects = "; ".join(sorted(SUBJECTS[room] for room in rooms))
        version = ", ".join(sorted(_pinned()[package])) if package else "Debian's package"
        yield f"| {name} | {version} | {subjects} |\n"


def _java() -> Iterable[str]:
    yield "| program of the tests | what it does | versions |\n|---|---|---|\n"
    for source, versions in sorted(jars.PROGRAMS.items()):
        if source.startswith("tests/interop/"):
            shown = ", ".join(map(_shown, versions))
            yield f"| `{Path(source).stem}` | {_purpose(ROOT / source)} | {shown} |\n"


def _shown(version: str) -> str:
    name = "Kafka Streams" if "kafka-streams" in jars.ARTIFACTS[version] else "kafka-clients"
    return f"{name} {version.rpartition('-')[2]}"


def _purpose(source: Path) -> str:
    """Return the first sentence of the comment of the class."""
    found = re.search(r"/\*\*(.*?)(?:[.;:] |[.;]\n|\*/)", source.read_text(), re.DOTALL)
    assert found is not None, f"{source} does not say what it is"
    words = re.sub(r"\n \*", " ", found[1]).split()
    return " ".join(words).rstrip(".")


def _tools() -> Iterable[str]:
    yield "| versions | tools |\n|---|---|\n"
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set().union(*CLASSES.values())):
        versions = (version for version in sorted(CLASSES) if name in CLASSES[version])
        names[", ".join(versions)].append(f"`kafka-{name}`")
    for versions_of, alike in sorted(names.items()):
        yield f"| {versions_of} | {', '.join(alike)} |\n"


def _frameworks() -> Iterable[str]:
    yield "| framework | version | where |\n|---|---|---|\n"
    for name, (module, package) in FRAMEWORKS.items():
        places = [f"`{place}`" for place in _places() if _has(place, {module, package})]
        if places:
            versions = ", ".join(sorted(_pinned()[package]))
            yield f"| {name} | {versions} | {', '.join(places)} |\n"


def _places() -> list[str]:
    found = (path for pattern in PLACES for path in sorted(ROOT.glob(pattern)))
    return [str(path.relative_to(ROOT)) for path in found if path.is_dir() or path.suffix in PAGES]


def _has(place: str, words: set[str]) -> bool:
    """Return whether a program there imports one of the words, or its project requires it."""
    folder = ROOT / place
    if folder.suffix in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", folder.read_text(encoding="utf-8"), re.DOTALL)
        return any(words & _imported_by(block) for block in blocks)
    asked = "".join(path.read_text(encoding="utf-8") for path in folder.glob("pyproject.toml"))
    return any(f'"{word}>=' in asked for word in words) or any(
        words & _imported(path) for path in folder.rglob("*.py")
    )


def _imported(path: Path) -> set[str]:
    return _imported_by(path.read_text(encoding="utf-8"))


def _imported_by(program: str) -> set[str]:
    """Return the first words of the modules that it imports, and the names from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
            if node.module.startswith(WRAPPERS):
                names |= {node.module.rpartition(".")[2], *(alias.name for alias in node.names)}
    return names


def _pinned() -> dict[str, set[str]]:
    """Return the versions of packages in requirements/ (examples may have others), and of Go's."""
    pins: dict[str, set[str]] = defaultdict(set)
    for module, version in go_programs.pinned().items():
        pins[module].add(version)
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                name, _, version = line.partition("==")
                pins[name].add(version)
    return pins


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
