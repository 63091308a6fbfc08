"""Numbers of clients that authenticated, and that failed to."""

from __future__ import annotations

from broker.metrics.authentications import authentications
from broker.network.authentication.sasl_listener import SaslListener
from broker.security.sasl.credentials import Credentials
from broker.security.sasl.mechanisms import Surroundings
from config.listeners.jaas import PLAIN_MODULE
from tests.broker.security.sasl.sasl_frames import SettableClock
from tests.broker.security.sasl.stated_config import stated


def sasl_listener(name: str) -> SaslListener:
    login = f"{PLAIN_MODULE} required user_alice=a;"
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{name.lower()}.plain.sasl.jaas.config": login,
    }
    around = Surroundings(SettableClock(), None, Credentials(), None, None)  # type: ignore[arg-type]
    return SaslListener(stated(properties), name, around)


def test_authentication_metrics_are_labelled_by_listener() -> None:
    listeners = {name: sasl_listener(name) for name in ("INTERNAL", "EXTERNAL")}
    counts = listeners["EXTERNAL"].counts
    counts.first.succeeded, counts.first.failed, counts.again.failed, counts.expired = 4, 3, 2, 1

    told = {
        metric.name.removeprefix("kafka_server_socketservermetrics_"): {
            sample.labels["listener"]: sample.value for sample in metric.samples
        }
        for metric in authentications(listeners)
    }

    assert told == {
        "successful_authentication": {"INTERNAL": 0, "EXTERNAL": 4},
        "failed_authentication": {"INTERNAL": 0, "EXTERNAL": 3},
        "successful_reauthentication": {"INTERNAL": 0, "EXTERNAL": 0},
        "failed_reauthentication": {"INTERNAL": 0, "EXTERNAL": 2},
        "expired_connections_killed": {"INTERNAL": 0, "EXTERNAL": 1},
    }


def test_a_broker_without_sasl_has_no_authentication_metrics() -> None:
    assert list(authentications({})) == []
