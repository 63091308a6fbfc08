"""Messages written by Kafka's classes, and the bytes written."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.golden import declarations
from tests.golden.definitions import Definition, definitions
from tests.golden.java_bytes import Question, ask
from tests.golden.values import Filling, null_paths, with_kafkas_names
from tests.support.jars import KAFKA_3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Message

ADDED_WITHOUT_A_NEW_VERSION: dict[tuple[str, int], frozenset[str]] = {
    ("ConsumerGroupCurrentMemberAssignmentValue", 0): frozenset({"assignment_epochs"}),
    ("ConsumerGroupMetadataValue", 0): frozenset({"metadata_hash"}),
    ("ConsumerGroupTargetAssignmentMetadataValue", 0): frozenset({"assignment_timestamp"}),
    ("OffsetCommitValue", 4): frozenset({"topic_id"}),
    ("ReadShareGroupStateSummaryResponse", 0): frozenset({"leader_epoch"}),
    ("ShareGroupMetadataValue", 0): frozenset({"metadata_hash"}),
    ("TransactionLogValue", 1): frozenset(
        {
            "previous_producer_id",
            "next_producer_id",
            "next_producer_epoch",
            "client_transaction_version",
        }
    ),
}
"""Fields of 4.4.0 that 3.9.1 lacks in the same version; all are tagged but that of share groups."""

RENAMED = {("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id"}
"""Fields that have another name in 3.9.1."""

INCOMPATIBLE = {
    (KAFKA_3, "ReadShareGroupStateSummaryResponse"),
    (KAFKA_3, "ShareGroupMetadataValue"),
}
"""Early-access messages whose layout 4.x changed without a new version; ours is the later one."""


@dataclass(frozen=True, slots=True)
class Case:
    """One message in one version, as we build it, and the bytes of it that Kafka's class wrote."""

    title: str
    version: int
    ours: Message
    theirs: bytes


def versions_of(definition: Definition) -> range:
    """Body versions: keys of internal topics said their type as a version until 4.0 named it."""
    if definition.name.endswith("Key"):
        return range(1)
    return range(definition.valid.first, definition.valid.last + 1)


def version_in_json(definition: Definition, version: int) -> int:
    """Under which number the definition knows `version` (see `versions_of`)."""
    return version if version in definition.valid else definition.valid.last


@functools.cache
def cases(kafka_version: str) -> dict[str, list[Case]]:
    """Cases by message name; asks Java on the first call, which takes a few seconds."""
    planned = list(_planned(kafka_version))
    answers = ask(kafka_version, [question for _, _, question in planned])
    found: dict[str, list[Case]] = {}
    for (title, ours, question), theirs in zip(planned, answers, strict=True):
        version = question.version if question.version in ours.VERSIONS else 0
        case = Case(f"v{version} {title}", version, ours, theirs)
        found.setdefault(question.definition.name, []).append(case)
    return found


def _planned(kafka_version: str) -> Iterator[tuple[str, Message, Question]]:
    for name, definition in definitions(kafka_version).items():
        message = declarations.messages().get(name)
        if message is None or (kafka_version, name) in INCOMPATIBLE:
            continue
        for version in versions_of(definition):
            in_json = version_in_json(definition, version)
            yield "default", message(), Question(definition, in_json, None)
            for path in ("", *null_paths(message, version)):
                title = f"null in {path}" if path else "filled"
                ours, json = Filling(version, path, _omitted(kafka_version, name, version)).of(
                    message
                )
                if kafka_version == KAFKA_3:
                    json = {RENAMED.get((name, key), key): json[key] for key in json}
                yield title, ours, Question(definition, in_json, with_kafkas_names(json))


def _omitted(kafka_version: str, name: str, version: int) -> frozenset[str]:
    if kafka_version != KAFKA_3:
        return frozenset()
    return ADDED_WITHOUT_A_NEW_VERSION.get((name, version), frozenset())
