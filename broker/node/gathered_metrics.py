"""The metrics of all brokers of a node as one page, each with the label `broker`."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from broker.metrics.status_socket import ask
from broker.node.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.node.member import Member

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 8.0
"""Less than Prometheus waits by default: one broker that hangs must not hide the others."""
SCRAPERS: Final = 4
"""Number of brokers scraped at a time: while a broker hangs, each page takes that long."""


class GatheredMetrics:
    """Asks the brokers for each requested page; on the endpoint's threads."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def page(self, name: str) -> bytes:
        """The page of that name, of all brokers, and how they are."""
        with ThreadPoolExecutor(len(self._members)) as threads:  # several may hang
            pages = list(threads.map(lambda member: _asked(member, name), self._members))
        ids = [str(member.plan.broker_id) for member in self._members]
        told = merged((key, page) for key, page in zip(ids, pages, strict=True) if page)
        answered = dict(zip(ids, (bool(page) for page in pages), strict=True))
        return (told + self._own(answered)).encode()

    def _own(self, answered: dict[str, bool]) -> str:
        lines = [
            "# HELP node_broker_up 1 if the broker serves, and has told its metrics",
            "# TYPE node_broker_up gauge",
        ]
        for member in self._members:
            key = str(member.plan.broker_id)
            is_up = answered[key] and member.state is State.SERVING
            lines.append(f'node_broker_up{{broker="{key}"}} {int(is_up)}')
        lines += [
            "# HELP node_broker_restarts_total Times it was started after it had ended by itself",
            "# TYPE node_broker_restarts_total counter",
        ]
        for member in self._members:
            label = f'{{broker="{member.plan.broker_id}"}}'
            lines.append(f"node_broker_restarts_total{label} {member.restarts}")
        return "\n".join(lines) + "\n"


def merged(pages: Iterable[tuple[str, bytes]]) -> str:
    """Merge pages in Prometheus' text format; `pages` are brokers' ids and their pages.

    The samples of a metric are kept together, under the comments of the first broker that has it.
    The text is not parsed: a page about 50,000 partitions would take seconds.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for broker, page in pages:
        label = f'broker="{broker}"'
        family, is_first = "", False
        for line in page.decode(errors="replace").splitlines():
            if line.startswith("#"):
                _, word, name, *_ = line.split(" ", 3)
                if word == "HELP":
                    family, is_first = name, name not in heads
                if is_first:
                    heads.setdefault(family, []).append(line)
            elif line:
                samples.setdefault(family, []).append(_labelled(line, label))
    texts = []
    for family, lines in heads.items():
        texts += lines
        texts += samples.get(family, ())
    return "\n".join([*texts, ""])


def _labelled(sample: str, label: str) -> str:
    name, brace, rest = sample.partition("{")
    if brace and " " not in name:
        comma = "" if rest.startswith("}") else ","
        return f"{name}{{{label}{comma}{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"


def _asked(member: Member, name: str) -> bytes:
    """A broker's page; nothing if it has none, or does not answer."""
    try:
        return ask(member.plan.socket, name, ANSWER_SECONDS)
    except OSError as error:
        logger.info("%s tells no metrics: %s", member.name, error)
        return b""
