"""Connection creation rate, limited by address."""

from __future__ import annotations

from broker.quotas.connection_rates import ConnectionRates
from broker.quotas.sampled_rate import Span

SPAN = Span(11, 1000)
HERE, THERE = "10.0.0.1", "10.0.0.2"
MOST = 100


def admitted(rates: ConnectionRates, address: str, attempts: int, now_ms: int = 0) -> int:
    return sum(rates.throttle_ms(address, now_ms) == 0 for _ in range(attempts))


def test_address_without_limit_connects_as_often_as_it_likes() -> None:
    rates = ConnectionRates(SPAN, MOST)
    rates.set(THERE, 1)

    assert admitted(rates, HERE, 1000) == 1000


def test_connections_above_the_limit_wait_a_window_at_most() -> None:
    rates = ConnectionRates(SPAN, MOST)
    rates.set(HERE, 2)

    assert admitted(rates, HERE, 100) == 20, "two a second, as if ten seconds had passed"
    assert 0 < rates.throttle_ms(HERE, 0) <= SPAN.window_ms
    assert rates.throttle_count == 81


def test_connections_that_were_refused_do_not_count() -> None:
    rates = ConnectionRates(SPAN, MOST)
    rates.set(HERE, 2)
    assert admitted(rates, HERE, 1000) == 20

    assert admitted(rates, HERE, 1000, 11_000) == 20


def test_own_limit_goes_before_that_of_all_others() -> None:
    rates = ConnectionRates(SPAN, MOST)
    rates.set(None, 1)
    rates.set(HERE, 3)

    assert admitted(rates, HERE, 100) == 30
    assert admitted(rates, THERE, 100) == 10

    rates.set(HERE, None)
    assert admitted(rates, HERE, 100) == 0, "with the limit of all others it is far above"


def test_a_limit_of_0_throttles_every_connection() -> None:
    rates = ConnectionRates(SPAN, MOST)
    rates.set(HERE, 0)

    assert rates.throttle_ms(HERE, 0) == SPAN.window_ms


def test_many_addresses_take_no_more_memory() -> None:
    rates = ConnectionRates(SPAN, 1)
    rates.set(None, 1)
    assert admitted(rates, HERE, 100) == 10

    assert admitted(rates, THERE, 1) == 1

    assert admitted(rates, HERE, 100) == 10, "forgotten, so it begins anew"
