"""`kafka-configs` of both versions on the quotas of users, client ids and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

ENTITIES = {
    ("users", "alice"): "Quota configs for user-principal 'alice' are",
    ("users", None): "Quota configs for the default user-principal are",
    ("clients", "load er"): "Quota configs for client-id 'load er' are",
    ("clients", None): "Quota configs for the default client-id are",
    ("ips", "10.1.2.3"): "Quota configs for ip '10.1.2.3' are",
    ("ips", None): "Quota configs for the default ip are",
}


def named(kind: str, name: str | None) -> tuple[str, ...]:
    chosen = ("--entity-default",) if name is None else ("--entity-name", name)
    return ("--entity-type", kind, *chosen)


def configs(tools: Tools, broker: BrokerProcess, *arguments: str) -> str:
    return tools.check("configs", "--bootstrap-server", broker.bootstrap, *arguments).output


@pytest.mark.parametrize("entity", ENTITIES)
def test_quota_is_added_shown_and_deleted(
    tools: Tools, broker: BrokerProcess, entity: tuple[str, str | None]
) -> None:
    key = "connection_creation_rate" if entity[0] == "ips" else "consumer_byte_rate"
    value, shown_value = ("100000", "100000.0") if entity[0] == "ips" else ("1000000000", "1.0E9")

    configs(tools, broker, "--alter", "--add-config", f"{key}={value}", *named(*entity))
    shown = configs(tools, broker, "--describe", *named(*entity))
    configs(tools, broker, "--alter", "--delete-config", key, *named(*entity))
    afterwards = configs(tools, broker, "--describe", *named(*entity))

    assert f"{ENTITIES[entity]} {key}={shown_value}".lower() in shown.lower()
    assert key not in afterwards


def test_quota_of_a_users_client(tools: Tools, broker: BrokerProcess) -> None:
    both = (*named("users", "alice"), *named("clients", None))
    quotas = "producer_byte_rate=1000000000,request_percentage=350.5,controller_mutation_rate=999.5"

    configs(tools, broker, "--alter", "--add-config", quotas, *both)
    shown = configs(tools, broker, "--describe", *both)
    all_shown = configs(
        tools, broker, "--describe", "--entity-type", "users", "--entity-type", "clients"
    )
    keys = "producer_byte_rate,request_percentage,controller_mutation_rate"
    configs(tools, broker, "--alter", "--delete-config", keys, *both)

    for output in (shown, all_shown):
        assert "user-principal 'alice', the default client-id are" in output
        for setting in ("producer_byte_rate=1.0E9", "request_percentage=350.5"):
            assert setting in output
        assert "controller_mutation_rate=999.5" in output
    assert "alice" not in configs(tools, broker, "--describe", *both)


def test_a_refused_quota_value_is_reported(tools: Tools, broker: BrokerProcess) -> None:
    outcome = tools.run(
        *("configs", "--bootstrap-server", broker.bootstrap, "--alter"),
        *("--add-config", "producer_byte_rate=-1", *named("users", "alice")),
    )
    assert "must be greater than 0" in outcome.output + outcome.errors
