"""Command lines that ask several endpoints: one that is down costs what it leads, and no more."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from broker.delivery.__main__ import main as delivery
from broker.http.endpoint import HttpEndpoint, say
from broker.http.protection import guard_of_lookups, protection_of
from broker.key_index.__main__ import main as key_index
from tests.broker.security.tls.tls_keys import config_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Main = Callable[[Sequence[str]], int]

LOOK_UPS = [(delivery, ("list",)), (key_index, ("--key", "4711"))]
PARTITIONS = 2
PAGE = 2
MORE = "there may be more: these are as many as --limit asks for\n"


class Broker:
    """Endpoint of a broker that leads some partitions of a topic."""

    def __init__(self, number: int, leads: dict[int, list[int]], others: dict[int, int]) -> None:
        """`leads` has offsets that wait; `others` the leaders of the other partitions."""
        self.number = number
        self._left = {(one, offset) for one, offsets in leads.items() for offset in offsets}
        self._leads = leads
        self._others = others
        self.refusal: tuple[str, str] | None = None
        """Status and text with which it refuses from its second answer on."""
        self.takes_over: set[int] = set()
        """Partitions that come to it between its first answer and its second."""
        self.cancelled: list[tuple[int, int]] = []
        self.gone: set[int] = set()
        """Offsets that were delivered after they were listed."""
        self._answers = 0
        config = config_of({})
        self._endpoint = HttpEndpoint(
            "lookups", "127.0.0.1", 0, protection_of(config, guard_of_lookups(config))
        )
        self._endpoint.serve(self._answer)
        self.url = self._endpoint.url

    def close(self) -> None:
        self._endpoint.close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self._answers += 1
        if self.refusal is not None and self._answers > 1:
            return say(*self.refusal, start_response)
        given = {name: one[0] for name, one in parse_qs(environ["QUERY_STRING"]).items()}
        answer = (
            self._cancel(given) if environ["PATH_INFO"].endswith("cancel") else self._list(given)
        )
        if isinstance(answer, tuple):
            return say(*answer, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    def _list(self, given: dict[str, str]) -> dict[str, Any]:
        start = int(given.get("start", "0"))
        end = start + min(PAGE, int(given["limit"]))
        found = [{"partition": one, "offset": offset} for one, offset in sorted(self._left)]
        following = str(end) if end < len(found) else None
        taken = self.takes_over if self._answers > 1 else set()
        elsewhere = [other for other in self._others.items() if other[0] not in taken]
        return {"records": found[start:end], "next": following, "led_elsewhere": elsewhere}

    def _cancel(self, given: dict[str, str]) -> dict[str, Any] | tuple[str, str]:
        partition, offset = int(given["partition"]), int(given["offset"])
        if partition not in self._leads:
            leader = self._others[partition]
            return "421 Misdirected Request", f"{partition} is led by broker {leader}"
        if offset in self.gone:
            return "409 Conflict", f"no record waits at offset {offset}"
        self.cancelled.append((partition, offset))
        return {"partition": partition, "offset": offset}


@pytest.fixture
def brokers() -> Iterator[list[Broker]]:
    made = [Broker(1, {0: [1, 2, 3]}, {1: 2}), Broker(2, {1: [7, 8, 9]}, {0: 1})]
    yield made
    for broker in made:
        broker.close()


@pytest.fixture
def down() -> Iterator[str]:
    """Yield an address with no listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def run(main: Main, words: Sequence[str], *urls: str) -> int:
    endpoints = [word for url in urls for word in ("--endpoint", url)]
    return main([*words, "--topic", "orders", *endpoints])


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[tuple[int, int]], str]:
    """Return the partitions and offsets printed, and the errors."""
    said, wrong = capsys.readouterr()
    lines = map(json.loads, said.splitlines())
    return [(line["partition"], line["offset"]) for line in lines], wrong


ALL = [(0, 1), (0, 2), (0, 3), (1, 7), (1, 8), (1, 9)]


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
def test_an_endpoint_that_is_down_costs_nothing_if_the_others_lead_all(
    main: Main,
    words: Sequence[str],
    brokers: list[Broker],
    down: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, two = brokers
    for urls in ((down, one.url, two.url), (one.url, down, two.url), (one.url, two.url, down)):
        assert run(main, words, *urls) == 0
        records, wrong = told(capsys)
        assert records == ALL
        assert wrong == f"{down}: [Errno 111] Connection refused\n"


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
def test_partitions_led_only_by_an_unreachable_endpoint_are_named(
    main: Main,
    words: Sequence[str],
    brokers: list[Broker],
    down: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(main, words, down, brokers[1].url) == 1
    records, wrong = told(capsys)
    assert records == ALL[3:]
    assert "Connection refused" in wrong
    assert "partition 0 was not" in wrong
    assert "it is led by broker 1" in wrong
    assert "partition 1" not in wrong


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
@pytest.mark.parametrize("is_first", [True, False])
def test_an_endpoint_that_stops_between_two_pages_is_skipped(
    main: Main,
    words: Sequence[str],
    brokers: list[Broker],
    capsys: pytest.CaptureFixture[str],
    *,
    is_first: bool,
) -> None:
    one, two = brokers
    one.refusal = "503 Service Unavailable", "the broker stops"
    urls = (one.url, two.url) if is_first else (two.url, one.url)

    assert run(main, words, *urls) == 1

    records, wrong = told(capsys)
    assert sorted(records) == [*ALL[:PAGE], *ALL[3:]]
    assert "503 the broker stops" in wrong
    assert "partition 0 was not" in wrong


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
def test_a_partition_that_moves_behind_the_page_is_named(
    main: Main, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It comes to a broker whose look-up has passed it, before that which led it is asked."""
    one, two = Broker(1, {1: [7, 8, 9]}, {0: 2}), Broker(2, {}, {0: 1, 1: 1})
    one.takes_over = {0}
    try:
        assert run(main, words, one.url, two.url) == 1
    finally:
        one.close()
        two.close()

    records, wrong = told(capsys)
    assert records == ALL[3:]
    assert "partition 0 was not" in wrong


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
def test_no_endpoint_that_answers_is_a_failure(
    main: Main, words: Sequence[str], down: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(main, words, down) == 1
    assert told(capsys) == ([], f"{down}: [Errno 111] Connection refused\n")


@pytest.mark.parametrize(("main", "words"), LOOK_UPS)
def test_a_list_that_ends_at_its_limit_misses_no_partition(
    main: Main, words: Sequence[str], brokers: list[Broker], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(main, (*words, "--limit", "4"), *[one.url for one in brokers]) == 0
    assert told(capsys) == (ALL[:4], MORE)
    assert run(main, (*words, "--limit", "3"), *[one.url for one in brokers]) == 0
    assert told(capsys) == (ALL[:3], MORE)
    assert run(main, (*words, "--limit", "6"), *[one.url for one in brokers]) == 0
    assert told(capsys) == (ALL[:6], "")


PLACE = "cancel", "--partition", "1", "--offset", "8"


def test_a_place_is_cancelled_by_the_endpoint_that_leads_whichever_is_down(
    brokers: list[Broker], down: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = brokers
    for urls in ((down, two.url), (two.url, down), (one.url, down, two.url)):
        assert run(delivery, PLACE, *urls) == 0
        assert told(capsys) == ([(1, 8)], "")
    assert two.cancelled == 3 * [(1, 8)]


def test_a_place_is_not_cancelled_if_its_leader_is_down(
    brokers: list[Broker], down: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = brokers[0]
    for urls in ((down, one.url), (one.url, down)):
        assert run(delivery, PLACE, *urls) == 1
        records, wrong = told(capsys)
        assert records == []
        assert wrong.startswith("no endpoint that can be reached leads orders-1:\n")
        assert f"{down}: [Errno 111] Connection refused\n" in wrong
        assert f"{one.url}: 421 1 is led by broker 2\n" in wrong


def test_a_record_delivered_meanwhile_does_not_stop_the_other_cancellations(
    brokers: list[Broker], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = brokers
    one.gone = {2}

    assert run(delivery, ("cancel", "--id", "x"), one.url, two.url) == 1

    records, wrong = told(capsys)
    assert records == [place for place in ALL if place != (0, 2)]
    assert "409 no record waits at offset 2" in wrong


def test_all_with_an_id_are_cancelled_where_they_can_be_reached(
    brokers: list[Broker], down: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(delivery, ("cancel", "--id", "x"), down, brokers[0].url) == 1
    records, wrong = told(capsys)
    assert records == ALL[:3]
    assert "partition 1 was not asked for: it is led by broker 2" in wrong
