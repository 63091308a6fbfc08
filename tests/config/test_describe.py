"""DescribeConfigs tells what holds, where it came from and what else was set."""

from __future__ import annotations

from config.catalogue import BROKER_KEYS, TOPIC_KEYS
from config.describe import (
    ConfigEntry,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from config.precedence import Layers, Setting, Source


def only(entries: list[ConfigEntry]) -> ConfigEntry:
    assert len(entries) == 1
    return entries[0]


def test_every_public_key_is_described() -> None:
    public = {name for name, key in TOPIC_KEYS.items() if not key.key.internal}
    assert {entry.name for entry in describe_topic({}, Layers())} == public
    public = {name for name, key in BROKER_KEYS.items() if not key.key.internal}
    assert {entry.name for entry in describe_broker(Layers())} == public


def test_a_topic_key_lists_its_settings_strongest_first() -> None:
    # What Apache Kafka 3.9.1 answers to the same settings.
    layers = Layers(file={"log.retention.hours": "24"}, cluster={"log.retention.ms": "777777"})
    entry = only(describe_topic({"retention.ms": "5000"}, layers, {"retention.ms"}))
    assert (entry.value, entry.source) == ("5000", Source.DYNAMIC_TOPIC)
    assert entry.synonyms == (
        Setting("retention.ms", "5000", Source.DYNAMIC_TOPIC),
        Setting("log.retention.ms", "777777", Source.DYNAMIC_DEFAULT_BROKER),
        Setting("log.retention.hours", "24", Source.STATIC_BROKER),
        Setting("log.retention.hours", "168", Source.DEFAULT),
    )


def test_a_topic_key_set_to_its_default_is_still_the_topics_own() -> None:
    entry = only(describe_topic({"retention.bytes": "-1"}, Layers(), {"retention.bytes"}))
    assert entry.source is Source.DYNAMIC_TOPIC
    assert not entry.is_default


def test_a_broker_key_in_another_unit_is_converted_and_not_shown() -> None:
    # So Apache Kafka 3.9.1 has it, and says that the value is the default.
    layers = Layers(file={"log.retention.hours": "1"})
    entry = only(describe_topic({}, layers, {"retention.ms"}))
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", Source.DEFAULT, ())
    entry = only(describe_topic({"retention.ms": "5"}, layers, {"retention.ms"}))
    assert entry.synonyms == (Setting("retention.ms", "5", Source.DYNAMIC_TOPIC),)


def test_a_topic_key_without_broker_key_has_only_its_default() -> None:
    entry = only(describe_topic({}, Layers(), {"remote.storage.enable"}))
    assert (entry.value, entry.source, entry.synonyms) == ("false", Source.DEFAULT, ())


def test_a_brokers_own_setting_beats_the_clusters_beats_the_files() -> None:
    layers = Layers({"num.io.threads": "1"}, {"num.io.threads": "2"}, {"num.io.threads": "3"})
    entry = only(describe_broker(layers, {"num.io.threads"}))
    assert (entry.value, entry.source) == ("3", Source.DYNAMIC_BROKER)
    assert [setting.text for setting in entry.synonyms] == ["3", "2", "1", "8"]


def test_a_synonym_in_another_unit_is_listed_after_the_key_itself() -> None:
    hours = {"log.retention.hours": "24"}
    entry = only(describe_broker(Layers(file=hours), {"log.retention.ms"}))
    assert (entry.value, entry.source, entry.synonyms) == (None, Source.DEFAULT, ())
    layers = Layers(file=hours, broker={"log.retention.ms": "5"})
    entry = only(describe_broker(layers, {"log.retention.ms"}))
    assert (entry.value, entry.source) == ("5", Source.DYNAMIC_BROKER)
    assert [setting.text for setting in entry.synonyms] == ["5", "24", "168"]


def test_values_are_normalised_and_broker_synonyms_shown_as_written() -> None:
    # What Apache Kafka 4.3.1 answers to the same settings.
    layers = Layers(file={"log.cleanup.policy": "delete , compact"})
    own = {"cleanup.policy": "compact, delete"}
    entry = only(describe_topic(own, layers, {"cleanup.policy"}))
    assert entry.value == "compact,delete"
    assert [setting.text for setting in entry.synonyms] == [
        "compact,delete",
        "delete , compact",
        "delete",
    ]
    entry = only(describe_topic({}, layers, {"cleanup.policy"}))
    assert (entry.value, entry.synonyms[0].text) == ("delete,compact", "delete , compact")
    entry = only(describe_broker(layers, {"log.cleanup.policy"}))
    assert (entry.value, entry.synonyms[0].text) == ("delete,compact", "delete , compact")


def test_group_values_and_their_broker_synonyms_are_normalised() -> None:
    name = "consumer.session.timeout.ms"
    layers = Layers(file={f"group.{name}": "+46000"})
    entry = only(describe_group({name: " 050000"}, layers, {name}))
    assert entry.value == "50000"
    assert [setting.text for setting in entry.synonyms] == ["50000", "+46000", "45000"]
    assert only(describe_group({}, layers, {name})).value == "46000"


def test_defaults_of_all_brokers_are_shown_as_written() -> None:
    layers = Layers(cluster={"log.preallocate": "TRUE"})
    entry = only(describe_cluster_default(layers, {"log.preallocate"}))
    assert (entry.value, entry.synonyms[0].text) == ("TRUE", "TRUE")
    entry = only(describe_broker(layers, {"log.preallocate"}))
    assert (entry.value, entry.synonyms[0].text) == ("true", "TRUE")


def test_passwords_are_never_shown() -> None:
    layers = Layers(file={"ssl.keystore.password": "hunter2"})
    entry = only(describe_broker(layers, {"ssl.keystore.password"}))
    assert entry.is_sensitive
    assert entry.value is None
    assert entry.synonyms == (Setting("ssl.keystore.password", None, Source.STATIC_BROKER),)


def test_an_unknown_key_is_described_as_sensitive() -> None:
    entry = only(describe_broker(Layers(file={"my.plugin": "x"}), {"my.plugin"}))
    assert (entry.value, entry.is_sensitive, entry.type_code) == (None, True, 0)
    assert entry.documentation is None


def test_types_have_the_codes_of_the_protocol() -> None:
    entry = only(describe_topic({}, Layers(), {"cleanup.policy"}))
    assert entry.type_code == 7


def test_topic_keys_can_be_changed_and_most_broker_keys_cannot() -> None:
    assert not only(describe_topic({}, Layers(), {"preallocate"})).is_read_only
    assert only(describe_broker(Layers(), {"broker.id"})).is_read_only
    assert not only(describe_broker(Layers(), {"log.retention.ms"})).is_read_only
