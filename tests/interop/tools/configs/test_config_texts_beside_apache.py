"""Configurations written in drawn ways are described as Apache Kafka describes them."""

from __future__ import annotations

import contextlib
import operator
import random
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.configs import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from protocol.messages.topics import CreateTopicsRequest
from tests.interop.conftest import eventually
from tests.interop.security.principals import Principal
from tests.interop.tools.configs import config_texts
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE = 0, 1
FILE = config_texts.draw(random.Random(29), config_texts.FILE)
ROUNDS = 5
AGREED_SECONDS = 60.0
NewTopic = CreateTopicsRequest.Topic
Change = IncrementalAlterConfigsRequest.Resource

Sides = tuple[Principal, Principal]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Our broker and Apache Kafka's, on the same property file."""
    processes: list[BrokerProcess] = []
    try:
        for make in (ours, apache_4):
            processes.append(make(tmp_path_factory.mktemp("broker"), FILE))
            processes[-1].start()
        clients = Principal(processes[0].port), Principal(processes[1].port)
        yield clients
        for client in clients:
            client.close()
    finally:
        for process in processes:
            process.kill()


def both(sides: Sides, request: Request, version: int) -> tuple[Any, Any]:
    return sides[0].ask(request, version), sides[1].ask(request, version)


def described(client: Principal, kind: int, names: Iterable[str], keys: Iterable[str]) -> Any:
    """Return the described values and their attributes, by resource and key."""
    resource = DescribeConfigsRequest.Resource
    asked = [
        resource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
        for name in names
    ]
    answer = client.ask(DescribeConfigsRequest(resources=asked, include_synonyms=True), 4)
    return {
        (result.resource_name, one.name): (
            *(one.value, one.config_source, one.config_type, one.is_sensitive),
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
        )
        for result in answer.results
        for one in result.configs
    }


def agree(sides: Sides, kind: int, names: Iterable[str], keys: Mapping[str, Any]) -> Any:
    """Wait until both describe the same; return it."""

    def descriptions() -> list[Any]:
        return [described(client, kind, names, keys) for client in sides]

    with contextlib.suppress(AssertionError):
        eventually(lambda: operator.eq(*descriptions()), AGREED_SECONDS)
    own, apache = descriptions()
    assert own == apache
    return own


def alter(sides: Sides, kind: int, name: str, texts: Mapping[str, str | None]) -> None:
    """Make a change at both, accepted or refused alike."""
    configs = [
        Change.Config(name=key, config_operation=DELETE if text is None else SET, value=text)
        for key, text in texts.items()
    ]
    resource = Change(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    own, apache = (answer.responses[0] for answer in both(sides, request, 1))
    assert own.error_code == apache.error_code, (texts, own, apache)


def new_topic(name: str, texts: Mapping[str, str]) -> NewTopic:
    configs = [NewTopic.Config(name=key, value=text) for key, text in texts.items()]
    return NewTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=configs
    )


def test_topics_are_created_and_described_the_same(sides: Sides) -> None:
    drawn = {
        f"topic-{seed}": config_texts.draw(random.Random(seed), config_texts.TOPIC)
        for seed in range(3 * ROUNDS)
    }
    request = CreateTopicsRequest(
        topics=[new_topic(name, texts) for name, texts in drawn.items()],
        timeout_ms=30_000,
        validate_only=False,
    )
    own, apache = both(sides, request, 7)
    assert {topic.error_code for topic in apache.topics} == {ErrorCode.NONE}
    created = {
        (topic.name, one.name): (one.value, one.config_source)
        for topic in own.topics
        for one in topic.configs
        if one.name in config_texts.TOPIC
    }

    shown = agree(sides, TOPIC, drawn, config_texts.TOPIC)
    assert created == {where: told[:2] for where, told in shown.items()}
    policies = {shown[name, "cleanup.policy"][0] for name in drawn}
    assert policies == {"compact", "delete", "compact,delete", "delete,compact"}


@pytest.mark.parametrize("key", config_texts.TOPIC)
def test_texts_that_are_no_values_are_refused_alike(sides: Sides, key: str) -> None:
    request = CreateTopicsRequest(
        topics=[
            new_topic(f"{key}-{number}", {key: text})
            for number, text in enumerate(config_texts.NO_VALUES)
        ],
        timeout_ms=30_000,
        validate_only=True,
    )
    own, apache = (
        [(text, topic.error_code) for topic, text in answered]
        for answered in (
            zip(answer.topics, config_texts.NO_VALUES, strict=True)
            for answer in both(sides, request, 7)
        )
    )
    assert own == apache


@pytest.mark.parametrize(
    ("kind", "name", "keys"),
    [
        (BROKER, "0", config_texts.CHANGEABLE),
        (BROKER, "", config_texts.CHANGEABLE),
        (GROUP, "g", config_texts.GROUP),
        (CLIENT_METRICS, "m", config_texts.CLIENT_METRICS),
    ],
    ids=["broker", "all brokers", "group", "client metrics"],
)
def test_altered_configurations_are_described_the_same(
    sides: Sides, kind: int, name: str, keys: Mapping[str, Any]
) -> None:
    try:
        for seed in range(ROUNDS):
            alter(sides, kind, name, config_texts.draw(random.Random(seed), keys))
            agree(sides, kind, [name], keys)
            if kind == BROKER:
                agree(sides, TOPIC, ["topic-0"], config_texts.TOPIC)
    finally:
        alter(sides, kind, name, dict.fromkeys(keys))


def test_property_file_is_described_the_same(sides: Sides) -> None:
    shown = agree(sides, BROKER, ["0"], config_texts.FILE)
    assert len(shown) == len(FILE)
    agree(sides, GROUP, ["of the file"], config_texts.GROUP)


@pytest.mark.parametrize(
    "kinds",
    [
        *([], [BROKER_LOGGER], [BROKER], [GROUP], [CLIENT_METRICS], [BROKER_LOGGER, BROKER]),
        *([0], [1], [64], [77], [-1], [BROKER_LOGGER, 77]),
    ],
    ids=str,
)
def test_resources_of_the_same_types_are_listed(sides: Sides, kinds: list[int]) -> None:
    own, apache = (
        (answer.error_code, {(r.resource_type, r.resource_name) for r in answer.config_resources})
        for answer in both(sides, ListConfigResourcesRequest(resource_types=kinds), 1)
    )
    assert own == apache
