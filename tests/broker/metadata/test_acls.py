"""Lists are deleted by filters as if each were held against each, at less cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from broker.metadata.acls import AclBinding, Acls
from broker.security.acls.acl_filter import AclFilter
from config.broker import BrokerConfig
from config.checks import STANDARD_AUTHORIZER
from controller.brokers.registration import create_skeleton
from protocol.acl_types import AclOperation, PatternType, ResourcePattern, ResourceType
from tests.broker.security.acls.acl_entries import ALICE, BOB, allow
from tests.controller.memory_store import MemoryEnsemble
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.metadata.acls import Deletion
    from protocol.errors import ApiError

READ = AclOperation.READ
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ("*", "or", "orders", "others")
PATTERNS = st.builds(
    ResourcePattern,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
)
BINDINGS = st.lists(
    st.builds(AclBinding, PATTERNS, st.sampled_from((allow(READ), allow(READ, BOB)))), unique=True
)
FILTERS = st.lists(
    st.builds(
        AclFilter,
        st.sampled_from((ResourceType.ANY, *TYPES)),
        st.none() | st.sampled_from(NAMES),
        st.sampled_from(
            (PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)
        ),
        st.sampled_from((None, ALICE)),
        st.sampled_from((None, "*", "10.0.0.1")),
        st.sampled_from((AclOperation.ANY, READ, AclOperation.WRITE)),
    )
)


class CountedFilter(AclFilter):
    """Counts how often one of them is held against a pattern."""

    count = 0

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        CountedFilter.count += 1
        return super().matches_pattern(pattern)


async def acls_with(bindings: Sequence[AclBinding]) -> Acls:
    """A broker's, with these entries."""
    store = MemoryEnsemble().connect()
    await create_skeleton(store)
    config = BrokerConfig(authorizer_class_name=STANDARD_AUTHORIZER)
    loop = asyncio.get_running_loop()
    acls = Acls(config, store, one_step_at_a_time, lambda _, work: loop.create_task(work()))
    await acls.start()
    assert not any(await acls.create(bindings))
    return acls


def shown(outcome: list[Deletion] | ApiError) -> set[AclBinding]:
    assert isinstance(outcome, list)
    assert not any(one.error for one in outcome)
    return {one.binding for one in outcome}


@given(BINDINGS, FILTERS)
def test_each_filter_returns_the_acls_it_matches(
    bindings: list[AclBinding], filters: list[AclFilter]
) -> None:
    def matches(one: AclFilter, binding: AclBinding) -> bool:
        return one.matches_pattern(binding.pattern) and one.matches_entry(binding.entry)

    async def scenario() -> None:
        acls = await acls_with(bindings)
        outcomes = await acls.delete(filters)
        assert [shown(outcome) for outcome in outcomes] == [
            {binding for binding in bindings if matches(one, binding)} for one in filters
        ]
        left = {
            AclBinding(pattern, entry)
            for pattern, entries in acls.authorizer.index.items()
            for entry in entries
        }
        assert left == {
            binding for binding in bindings if not any(matches(one, binding) for one in filters)
        }

    asyncio.run(scenario())


def test_many_filters_are_not_compared_with_every_acl() -> None:
    count = 1000
    names = [f"topic-{number}" for number in range(count)]

    async def scenario() -> None:
        entry = allow(READ)
        acls = await acls_with(
            [AclBinding(ResourcePattern(ResourceType.TOPIC, name), entry) for name in names]
        )
        CountedFilter.count = 0
        outcomes = await acls.delete([CountedFilter(ResourceType.TOPIC, name) for name in names])
        assert all(len(shown(outcome)) == 1 for outcome in outcomes)
        assert CountedFilter.count <= 3 * count

    asyncio.run(scenario())
