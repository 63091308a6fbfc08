"""Broker wanted by a test: by command line, by the ini file, and by its markers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

from broker.embedded.choices import choice_named

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKER: Final = "kafka"
MARKED: Final = "@pytest.mark.kafka"
STORAGES: Final = ("disk", "memory")
ISOLATIONS: Final = ("thread", "process")
PROTOCOLS: Final = ("ssl", "sasl_plaintext", "sasl_ssl")
BROKERS: Final = 3


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A broker, or a cluster of them. Equal ones are the same one."""

    config: tuple[tuple[str, str], ...] = ()
    brokers: int = BROKERS
    """Of `kafka_cluster`."""
    storage: str = "disk"
    isolation: str = "thread"
    """Of `kafka_broker`."""
    security: str | None = None
    """Of clients."""

    def marked(self, marker: pytest.Mark) -> Wanted:
        """The same, with a marker's options on top."""
        said = dict(marker.kwargs)
        _check_partitions(said.pop("partitions", 1))
        _check_mapping("topic_config", said.pop("topic_config", {}))
        config = said.pop("config", {})
        unknown = said.keys() - {"brokers", "storage", "isolation", "security"}
        if unknown or marker.args:
            wrong = ", ".join([*map(repr, marker.args), *sorted(unknown)])
            raise pytest.UsageError(
                "@pytest.mark.kafka takes config, brokers, storage, isolation, security, "
                f"partitions and topic_config by name, not {wrong}"
            )
        _check_mapping("config", config)
        both = {**dict(self.config), **{name: _text(value) for name, value in config.items()}}
        found = dataclasses.replace(self, config=tuple(sorted(both.items())), **said)
        return found.checked(f"{MARKED}: ")

    def checked(self, prefix: str) -> Wanted:
        """The same in lower case; refuse what no broker can be, as it was written by the user.

        Raises UsageError.
        """
        count: object = self.brokers
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise pytest.UsageError(
                f"{prefix}brokers is a whole number from 1 on, and not {count!r}"
            )
        try:
            return dataclasses.replace(
                self,
                storage=choice_named("storage", self.storage, STORAGES),
                isolation=choice_named("isolation", self.isolation, ISOLATIONS),
                security=self.security and choice_named("security", self.security, PROTOCOLS),
            )
        except ValueError as error:
            raise pytest.UsageError(f"{prefix}{error}") from None


TOPIC_OPTIONS: Final = ("partitions", "topic_config")
"""Marker options that concern `kafka_topic`."""


def add_options(parser: pytest.Parser) -> None:
    """The command line's, and those of the ini file."""
    group = parser.getgroup("kafka", "Kafka brokers for tests")
    group.addoption(
        "--kafka-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of server.properties for all brokers; may be repeated",
    )
    group.addoption("--kafka-brokers", type=int, help=f"brokers of kafka_cluster ({BROKERS})")
    group.addoption(
        "--kafka-storage", type=str.lower, choices=STORAGES, help="where logs are (disk)"
    )
    group.addoption(
        "--kafka-isolation",
        type=str.lower,
        choices=ISOLATIONS,
        help="where kafka_broker runs (thread)",
    )
    group.addoption(
        "--kafka-security",
        type=str.lower,
        choices=PROTOCOLS,
        help="how clients connect (plaintext)",
    )
    parser.addini("kafka_security", f"how clients connect: {', '.join(PROTOCOLS)}")
    parser.addini("kafka_config", "keys of server.properties, KEY=VALUE each", "linelist")
    parser.addini("kafka_brokers", f"brokers of kafka_cluster ({BROKERS})")
    parser.addini("kafka_storage", "where logs are: disk or memory")
    parser.addini("kafka_isolation", "where kafka_broker runs: thread or process")


def wanted_by_all(config: pytest.Config) -> Wanted:
    """Defaults where no marker says otherwise."""
    lines = [*config.getini("kafka_config"), *config.getoption("--kafka-config")]
    found = Wanted(
        tuple(sorted(_pairs(lines))),
        _number(_said(config, "brokers")),
        _said(config, "storage") or STORAGES[0],
        _said(config, "isolation") or ISOLATIONS[0],
        _said(config, "security") or None,
    )
    return found.checked("kafka_")


def _check_partitions(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise pytest.UsageError(
            f"{MARKED}: partitions is a whole number from 1 on, and not {count!r}"
        )


def _check_mapping(option: str, config: object) -> None:
    if not isinstance(config, Mapping):
        raise pytest.UsageError(f"{MARKED}: {option} is a mapping, and not {config!r}")


def _said(config: pytest.Config, name: str) -> Any:  # noqa: ANN401 - text or number
    option = config.getoption(f"--kafka-{name}")
    return config.getini(f"kafka_{name}") if option is None else option


def _number(said: Any) -> Any:  # noqa: ANN401 - text or number, checked by `Wanted.check`
    """Convert a number; leave anything else as it is."""
    if said in ("", None):
        return BROKERS
    return int(said) if str(said).strip().isdecimal() else said


def _pairs(lines: Iterable[str]) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    for line in lines:
        name, is_pair, value = line.partition("=")
        if not is_pair:
            raise pytest.UsageError(f"kafka_config: {line!r} is not KEY=VALUE")
        pairs[name.strip()] = value.strip()
    return list(pairs.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
