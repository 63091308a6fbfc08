"""Several endpoints queried one after the other, each for the partitions its broker leads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from broker.http.client import DEFAULT_ENDPOINT, FailedError, UnavailableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    Page = Callable[[str, int, str | None], dict[str, Any]]
    """Queries an endpoint for that number of records, at most, from a position; raises
    FailedError.
    """

EXIT_OK, EXIT_FAILED = 0, 1


class EndpointsInTurn:
    """Queries endpoints in turn. One that is down is skipped: another may lead its partitions."""

    def __init__(self, options: argparse.Namespace, page: Page) -> None:
        """`options` are those of `add_options`."""
        self.urls: list[str] = options.endpoint or [DEFAULT_ENDPOINT]
        self._page = page
        self._down: list[str] = []
        self._unasked: dict[int, int] | None = None
        """Partitions that no endpoint has answered completely, with their leaders."""
        self._may_be_more = False

    def records(self, limit: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each record and its endpoint. Raises FailedError if none answers."""
        left = limit
        for url in self.urls:
            start: str | None = None
            elsewhere: dict[int, int] = {}
            while left > 0:
                try:
                    page = self._page(url, left, start)
                except UnavailableError as error:
                    self._down.append(str(error))
                    break
                for record in page["records"]:
                    yield url, record
                left -= len(page["records"])
                start = page["next"]
                self._may_be_more = left <= 0 and (start is not None or url != self.urls[-1])
                # One that came to this broker between two pages was passed by if it lies before.
                elsewhere |= dict(page["led_elsewhere"])
                if start is None:
                    self._note_asked(elsewhere)
                    break
        if left <= 0:
            self._unasked = {}  # as many as were wanted
        if self._unasked is None:
            raise FailedError("\n".join(self._down))

    def tell(self, undone: str) -> int:
        """Report endpoints that are down and partitions not `undone`; return the exit code."""
        for text in self._down:
            sys.stderr.write(f"{text}\n")
        if self._may_be_more:
            sys.stderr.write("there may be more: these are as many as --limit asks for\n")
        unasked = self._unasked or {}
        for partition, leader in sorted(unasked.items()):
            led = f"led by broker {leader}" if leader >= 0 else "without a leader"
            sys.stderr.write(f"partition {partition} was not {undone}: it is {led}\n")
        return EXIT_FAILED if unasked else EXIT_OK

    def _note_asked(self, elsewhere: dict[int, int]) -> None:
        known = elsewhere if self._unasked is None else self._unasked
        self._unasked = {number: known[number] for number in known.keys() & elsewhere.keys()}
