"""The rows are those of Apache Kafka.

`apache_keys.tsv` holds the facts, printed by a program that asked the classes of 3.9.1, 4.3.1 and
4.4.0 for every key; where they differ it holds those of 3.9.1. The column `release` says `both` for
a key of 3.9.1 and 4, and otherwise where it is. What we do otherwise stands here.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from config.catalogue import BROKER_KEYS, TOPIC_KEYS
from config.values import format_value

FACTS = list(
    csv.DictReader(
        (Path(__file__).parent / "apache_keys.tsv").read_text().splitlines(), delimiter="\t"
    )
)

# 4.x made lists of them; one attribute per element is easier to use.
LISTS_SINCE_4 = {
    "advertised.listeners",
    "controller.listener.names",
    "early.start.listeners",
    "listeners",
    "log.dirs",
}
# What Apache Kafka has no key for; the page says so.
OURS = (
    {("topic", "flush.replicas"), ("topic", "key.index.enable")}
    | {
        ("broker", name)
        for name in (
            "audit.log.allowed",
            "audit.log.max.lines.per.second",
            "connection.log.max.lines.per.second",
            "authorizer.max.cached.decisions",
            "broker.cpus",
            "broker.processes",
            "broker.processes.directory",
            "broker.processes.restart.backoff.max.ms",
            "broker.processes.restart.backoff.ms",
            "broker.processes.stop.timeout.ms",
            "broker.processes.sync.timeout.ms",
            "client.telemetry.max.instances",
            "client.telemetry.max.points",
            "client.telemetry.max.series",
            "connection.buffer.max.bytes",
            "embedded.record.bytes.kept",
            "embedded.requests.kept",
            "delivery.batch.max.bytes",
            "delivery.batch.max.records",
            "delivery.cancelled.max.records",
            "delivery.memory.max.records",
            "key.index.check.interval.ms",
            "key.index.host",
            "key.index.io.max.bytes.per.second",
            "key.index.lookup.max.bytes",
            "key.index.lookup.max.records",
            "key.index.lookup.max.waiting",
            "key.index.lookup.timeout.ms",
            "key.index.password",
            "key.index.port",
            "key.index.ssl.enable",
            "key.index.user",
            "authorizer.max.deletions.per.request",
            "group.consumer.regex.max.count",
            "group.member.max.topics",
            "max.incremental.fetch.session.cache.partitions",
            "max.new.partitions.per.request",
            "max.request.elements",
            "max.ssl.handshakes",
            "queued.max.request.elements",
            "quota.max.tracked.clients",
            "group.consumer.regex.max.length",
            "group.streams.max.tasks",
            "group.streams.max.topology.size",
            "metrics.host",
            "metrics.password",
            "metrics.port",
            "metrics.ssl.enable",
            "metrics.user",
            "reserved.file.descriptors",
            "share.state.retry.timeout.ms",
            "ssl.handshake.timeout.ms",
            "status.socket",
            "status.socket.metrics",
            "ssl.store.check.interval.ms",
            "transactional.id.pattern.max.length",
            "zookeeper.request.max.bytes",
        )
    }
    | {
        ("topic", name)
        for name in (
            *("delivery.delay.enable", "delivery.delay.max.ms", "delivery.delay.ms"),
            *("retry.backoff.max.ms", "retry.backoff.ms", "retry.dead.letter.topic"),
            *("retry.levels", "retry.max.attempts", "retry.policy"),
        )
    }
)
# Apache Kafka's authorizers read them, and its brokers have no rows for them.
OF_AUTHORIZERS = {("broker", "super.users"), ("broker", "allow.everyone.if.no.acl.found")}
# Required where metadata is kept in a Raft quorum, which it is not here.
OPTIONAL_HERE = {"controller.listener.names"}
# 4.4.0 has other bounds than 3.9.1; test_like_apache.py holds them.
RULES_OF_4 = {
    *("controller.quorum.append.linger.ms", "controller.quorum.election.backoff.max.ms"),
    *("controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms"),
    *("controller.quorum.request.timeout.ms", "controller.quorum.retry.backoff.ms"),
    *("group.coordinator.append.linger.ms", "group.coordinator.rebalance.protocols"),
    *("group.share.max.size", "group.share.record.lock.duration.ms", "log.flush.interval.ms"),
    *("log.flush.scheduler.interval.ms", "log.roll.jitter.ms", "log.roll.ms"),
    *("num.replica.fetchers", "offsets.topic.compression.codec"),
    "share.coordinator.state.topic.compression.codec",
}
# Public since 4.4.0.
NO_LONGER_INTERNAL = {"group.consumer.migration.policy"}
# Nobody has to ask for consumer and streams groups, as since 4.2; share groups: a preview in 3.9.
DEFAULTS_OF_OURS = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.share.partition.max.record.locks": "2000",
    "group.consumer.migration.policy": "bidirectional",
}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['resource']}:{fact['name']}")
def test_each_key_equals_apache_kafkas_definition(fact: dict[str, str]) -> None:
    name = fact["name"]
    key = (BROKER_KEYS if fact["resource"] == "broker" else TOPIC_KEYS)[name].key
    assert key.type.name == ("LIST" if name in LISTS_SINCE_4 else fact["type"])
    default = format_value(key.default)
    fact_default = DEFAULTS_OF_OURS.get(name, fact["default"])
    assert default == {"<null>": None, "<required>": None}.get(fact_default, fact_default)
    assert key.importance.value == fact["importance"]
    assert key.internal == (fact["internal"] == "internal" and name not in NO_LONGER_INTERNAL)
    if name not in RULES_OF_4:
        rule = "" if key.rule is None else str(key.rule)
        assert rule == fact["rule"].removeprefix("(case insensitive) ")
    if fact["resource"] == "broker":
        assert key.scope.value == fact["scope"]
    else:
        assert " ".join(key.broker_keys) == fact["broker keys"]


def test_exactly_apache_kafkas_keys_are_defined() -> None:
    names = {(fact["resource"], fact["name"]) for fact in FACTS}
    rows = {("broker", name) for name in BROKER_KEYS} | {("topic", name) for name in TOPIC_KEYS}
    assert rows - OURS - OF_AUTHORIZERS == names
    assert rows >= OURS | OF_AUTHORIZERS


def test_topic_keys_name_broker_keys_of_the_same_default() -> None:
    for name, _, key in TOPIC_KEYS.values():
        for broker_key in key.broker_keys[:1]:
            default = BROKER_KEYS[broker_key].key.default
            assert default in {key.default, None}, name
