"""Texts that mean the same value of a configuration key, drawn, and texts that mean none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    Draw = Callable[[random.Random], str]

BLANKS: Final = ("", "", " ", "\t", "  ")
DOUBLES: Final = (
    *("1", "0", "-0", ".5", "1.", "+.5", "5e-1", "0.5f", "0.25D", "1E0", "0.1000", "1e-3"),
    *("0.0001", "0.00001234", "1e-400", "2e-44", "0.30000000000000004", "0.12345678901234567890"),
)
NO_VALUES: Final = (
    *("", " ", ",", "yes", "1", "5.0", "5e0", "0x5", "5L", "1_000", "--5", "+ 5", "99999999999"),
    *("\u00a0true", "5\u00a0", "\x015", "\u0665", "\u3000gzip", "half", "0,5", "Infinity", "2"),
    *("Compact", "compact,", "compact,,delete", "GZIP", "createtime", "0:0,x", "*,*", "0:0,"),
)
"""Texts that are no value of most keys."""


def booleans(chance: random.Random) -> str:
    """`true` or `false`, in any case."""
    word = chance.choice(("true", "false"))
    return "".join(chance.choice((letter, letter.upper())) for letter in word)


def numbers(low: int, high: int) -> Draw:
    """Whole numbers, with a sign and zeros in front."""

    def draw(chance: random.Random) -> str:
        zeros = "0" * chance.randrange(3)
        return f"{chance.choice(('', '+'))}{zeros}{chance.randint(low, high)}"

    return draw


def ratios(chance: random.Random) -> str:
    """Numbers from 0 to 1."""
    return chance.choice(DOUBLES)


def rates(chance: random.Random) -> str:
    """Numbers around those that Java writes with an exponent."""
    return chance.choice(("1e7", "9999999", "10000000", "12345678.5", "1e21", "1.7e+308", "123"))


def lists(*elements: str) -> Draw:
    """Lists of some of the elements, with repetitions."""

    def draw(chance: random.Random) -> str:
        comma = chance.choice((",", " , ", ",\t", ", "))
        return comma.join(chance.choices(elements, k=chance.randint(1, 4)))

    return draw


def words(*choices: str) -> Draw:
    """Draw one of some words."""
    return lambda chance: chance.choice(choices)


POLICIES: Final = lists("compact", "delete")
TOPIC: Final[Mapping[str, Draw]] = {
    "unclean.leader.election.enable": booleans,
    "max.message.bytes": numbers(1_000, 1_000_000),
    "retention.ms": numbers(10**8, 10**12),
    "min.cleanable.dirty.ratio": ratios,
    "cleanup.policy": POLICIES,
    "leader.replication.throttled.replicas": lists("0:0", "1:0", "2:5"),
    "compression.type": words("gzip", "producer", "zstd"),
    "message.timestamp.type": words("CreateTime", "LogAppendTime"),
}
CHANGEABLE: Final[Mapping[str, Draw]] = {
    "unclean.leader.election.enable": booleans,
    "message.max.bytes": numbers(1_000, 1_000_000),
    "log.retention.ms": numbers(10**8, 10**12),
    "log.cleaner.min.cleanable.ratio": ratios,
    "log.cleaner.io.max.bytes.per.second": rates,
    "log.cleanup.policy": POLICIES,
    "compression.type": words("gzip", "producer", "zstd"),
    "max.connections.per.ip.overrides": words("127.0.0.2:5 , 127.0.0.3:6", "127.0.0.2:7"),
}
"""Keys that a broker has of its own, and that all brokers have a default for."""
FILE: Final[Mapping[str, Draw]] = {
    "auto.create.topics.enable": booleans,
    "controlled.shutdown.enable": booleans,
    "num.partitions": numbers(1, 4),
    "offsets.topic.replication.factor": numbers(1, 1),
    "log.retention.bytes": numbers(10**9, 10**12),
    "log.retention.hours": numbers(100, 200),
    "log.cleaner.io.buffer.load.factor": ratios,
    "sasl.kerberos.ticket.renew.jitter": ratios,
    "sasl.enabled.mechanisms": lists("PLAIN", "SCRAM-SHA-256"),
    "ssl.cipher.suites": lists("A", "B"),
    "sasl.kerberos.principal.to.local.rules": lists("DEFAULT"),
    "group.coordinator.rebalance.protocols": lists("classic", "consumer"),
    "log.message.timestamp.type": words("CreateTime", "LogAppendTime"),
    "broker.rack": words("a rack", "b"),
    "ssl.key.password": words("secret"),
    "group.consumer.session.timeout.ms": numbers(45_000, 60_000),
}
"""Keys of the property file."""
GROUP: Final[Mapping[str, Draw]] = {
    "consumer.session.timeout.ms": numbers(45_000, 60_000),
    "share.auto.offset.reset": words("latest", "earliest", "by_duration:PT1H"),
    "share.isolation.level": words("read_committed", "read_uncommitted"),
}
CLIENT_METRICS: Final[Mapping[str, Draw]] = {
    "interval.ms": numbers(100, 3_600_000),
    "metrics": lists("a.", "b."),
}


def draw(chance: random.Random, keys: Mapping[str, Draw]) -> dict[str, str]:
    """A text for each key, with blanks around some."""
    return {
        name: chance.choice(BLANKS) + text(chance) + chance.choice(BLANKS)
        for name, text in keys.items()
    }
