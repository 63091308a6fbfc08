"""Write requirements/*.txt: the exact versions of everything `make` installs.

Takes what pyproject.toml asks for and what the running environment has installed, follows the
installed packages' own requirements, and pins each. So: upgrade in the environment, test, lock.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
HEADER = "# Written by scripts/lock.py (make lock). {purpose}\n"
FILES = {
    "broker": "What the broker needs to run.",
    "kerberos": "What SASL GSSAPI needs besides.",
    "spark": "What the Spark jobs need besides.",
    "compiled": "What `make compile` needs besides, and a C compiler.",
    "dev": "What checks, tests and benchmarks need besides.",
    "pytest": "What the pytest plugin needs besides.",
}


def closure(wanted: list[str]) -> dict[str, str]:
    """Map every package that the wanted ones lead to onto its installed version."""
    versions: dict[str, str] = {}
    pending = [(Requirement(text), "") for text in wanted]
    while pending:
        requirement, extra = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in versions or not applies(requirement, extra):
            continue
        installed = distribution(name)
        versions[name] = installed.version
        extras = ["", *requirement.extras]
        pending += [(Requirement(t), e) for t in installed.requires or [] for e in extras]
    return versions


def applies(requirement: Requirement, extra: str) -> bool:
    """Whether a requirement's marker holds here."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def main() -> None:
    """Write one file per group, each without what the groups before it pin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"broker": project["dependencies"], **project["optional-dependencies"]}
    pinned: dict[str, str] = {}
    for name, purpose in FILES.items():
        versions = {k: v for k, v in closure(groups[name]).items() if k not in pinned}
        pinned |= versions
        lines = [f"{package}=={version}\n" for package, version in sorted(versions.items())]
        text = HEADER.format(purpose=purpose) + "".join(lines)
        (ROOT / "requirements" / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
