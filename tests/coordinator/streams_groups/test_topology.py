"""Counts of partitions that follow from each other, and topologies that no topics could help."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from coordinator.streams_groups.heartbeats.checks import check_size
from coordinator.streams_groups.topology import (
    ConfiguredTopology,
    StatusCode,
    configure,
    topology_of,
)
from protocol.errors import ApiError, ErrorCode
from tests.coordinator.few_topics import FewTopics
from tests.support.topologies import Subtopology, Topology, internal, part, topology

if TYPE_CHECKING:
    from collections.abc import Sequence


def configured(*parts: Subtopology, **topics: int) -> ConfiguredTopology:
    few = FewTopics()
    for name, partitions in topics.items():
        few.put(name, partitions)
    return configure(topology_of(Topology(epoch=0, subtopologies=list(parts))), few)


def counts(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.partitions for name, topic in found.missing.items()}


def together(
    sources: Sequence[int], repartitioned: Sequence[int] = ()
) -> list[Subtopology.CopartitionGroup]:
    group = Subtopology.CopartitionGroup(
        source_topics=list(sources),
        source_topic_regex=[],
        repartition_source_topics=list(repartitioned),
    )
    return [group]


def test_changelog_has_as_many_partitions_as_the_largest_source() -> None:
    found = configured(part("0", ["one", "two"], changelogs=[internal("c")]), one=6, two=4)

    assert counts(found) == {"c": 6}
    assert found.subtopologies["0"].task_count == 6


def test_repartition_topics_follow_from_each_other_along_a_chain() -> None:
    chain = [
        part(name, [], sinks=[to], repartitioned=[internal(since)])
        for name, (since, to) in zip("4321", pairwise(["r1", "r2", "r3", "r4", "r5"]), strict=True)
    ]
    first = part("5", ["one"], sinks=["r1"])
    last = part("0", [], repartitioned=[internal("r5")])
    found = configured(last, *reversed(chain), first, one=7)

    assert counts(found) == dict.fromkeys(("r1", "r2", "r3", "r4", "r5"), 7)
    assert found.task_count == 6 * 7


def test_source_that_is_known_later_counts_no_more_as_in_apache() -> None:
    found = configured(
        part("0", ["small"], sinks=["out"], repartitioned=[internal("big")]),
        part("1", ["one"], sinks=["big"]),
        part("2", [], repartitioned=[internal("out")]),
        small=2,
        one=9,
    )

    assert counts(found) == {"out": 2, "big": 9}


def test_copartitioned_repartition_topic_takes_the_count_of_the_other_topic() -> None:
    found = configured(
        part("0", ["one"], sinks=["r"]),
        part("1", ["two"], repartitioned=[internal("r")], together=together([0], [0])),
        one=6,
        two=4,
    )

    assert counts(found) == {"r": 4}


def test_fixed_repartition_topic_does_not_give_way() -> None:
    found = configured(
        part("0", ["one"], sinks=["r"]),
        part("1", ["two"], repartitioned=[internal("r", 3)], together=together([0], [0])),
        one=6,
        two=4,
    )

    assert found.problem is not None
    assert found.problem.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "[3] of repartition topic [r]" in found.problem.detail


def test_an_internal_topic_with_a_wrong_partition_count_is_reported() -> None:
    found = configured(part("0", ["one"], changelogs=[internal("c")]), one=6, c=5)

    assert found.problem is not None
    assert found.problem.detail.endswith("expected 6, found 5")


def test_of_many_missing_topics_three_are_named() -> None:
    found = configured(part("0", ["a", "b", "c", "d", "e"]))

    assert found.problem is not None
    assert found.problem.detail == "Source topics a, b, c and 2 additional topics are missing."


@pytest.mark.parametrize(
    "parts",
    [
        [part("0", [])],
        [part("0", ["one"]), part("0", ["one"])],
        [part("0", ["one"], sinks=["s"]), part("1", [], repartitioned=[internal("r")])],
        [part("0", [], sinks=["r"], repartitioned=[internal("r")])],
        [part("0", ["one"], repartitioned=[internal("r", -1)])],
        [part("0", ["one"], together=together([1]))],
        [part("0", ["one"], together=together([-1]))],
        [part("0", ["one"], together=together([], [0]))],
    ],
    ids=[
        "no source",
        "twice",
        "no sink",
        "loop",
        "negative",
        "no topic",
        "before",
        "no topic of r",
    ],
)
def test_topology_that_no_topics_could_help_is_refused(parts: list[Subtopology]) -> None:
    with pytest.raises(ApiError) as refused:
        configured(*parts, one=6)

    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize(("limit", "is_refused"), [(5, True), (6, False)])
def test_size_counts_everything_that_is_listed(limit: int, *, is_refused: bool) -> None:
    said = topology("repartitioned", "app")
    said.subtopologies.pop(0)  # leaves a subtopology with two topics of one configuration each
    said.subtopologies[0].repartition_sink_topics = ["r"]
    if is_refused:
        with pytest.raises(ApiError):
            check_size(said, limit)
    else:
        check_size(said, limit)


def test_long_chain_costs_a_step_for_each_link() -> None:
    names = [f"r{n}" for n in range(2_000)]
    links = [
        part(since, [], sinks=[to], repartitioned=[internal(since)])
        for since, to in pairwise(names)
    ]
    last = part("last", [], repartitioned=[internal(names[-1])])
    first = part("first", ["one"], sinks=names[:1])

    found = configured(last, *reversed(links), first, one=3)

    assert set(counts(found).values()) == {3}
