"""Invalid arguments of an embedded broker are refused in its constructor, by name."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from broker.testing import EmbeddedBroker, EmbeddedCluster


@pytest.mark.parametrize("made", [EmbeddedBroker, EmbeddedCluster])
@pytest.mark.parametrize("argument", ["storage", "security"])
def test_an_argument_outside_its_choices_is_refused(made: Any, argument: str) -> None:
    with pytest.raises(ValueError, match=f"^{argument} is one of .*, and not 'tls'"):
        made(**{argument: "tls"})


@pytest.mark.parametrize("made", [EmbeddedBroker, EmbeddedCluster])
def test_choices_are_taken_in_any_case(made: Any) -> None:
    made(storage="Memory", security="SASL_SSL")


def test_an_isolation_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^isolation is one of thread, process, and not 'vm'"):
        EmbeddedBroker(isolation="vm")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("brokers", "error"), [(0, ValueError), (-1, ValueError), ("x", TypeError), (True, TypeError)]
)
def test_a_cluster_of_no_brokers_is_refused(brokers: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^brokers is "):
        EmbeddedCluster(brokers)


@pytest.mark.parametrize("made", [EmbeddedBroker, EmbeddedCluster])
def test_a_key_that_no_broker_has_is_a_warning_at_its_line(made: Any) -> None:
    with pytest.warns(UserWarning, match="num.partition is .*; did you mean num.part") as told:
        made(config={"num.partition": 1})

    assert told[0].filename == __file__


def test_known_broker_and_listener_keys_cause_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EmbeddedBroker({"num.partitions": 1, "listener.name.external.ssl.keystore.type": "PEM"})
