"""Odd names and principals: stored exactly, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import strategies as st

from config.checks import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from protocol.acl_types import AclOperation, PatternType, ResourceType
from protocol.errors import ErrorCode
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.security.test_acls import acl, create, deleted, described, wanted

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.text(max_size=40) | st.sampled_from(
    ["*", "User:*", "a:b", '"', "\\", "..", "%2F", "a/b"]
)
PRINCIPALS = NAMES | NAMES.map("User:{}".format)
REFUSALS = (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("authorizer", [ACL_AUTHORIZER, STANDARD_AUTHORIZER])
def test_accepted_acls_are_described_exactly_as_created(tmp_path: Path, authorizer: str) -> None:
    drawn: list[tuple[str, str, str, int]] = []

    @hypothesis.settings(max_examples=300, database=None, derandomize=True)
    @hypothesis.given(NAMES, PRINCIPALS, NAMES, st.sampled_from([3, 4]))
    def draw(name: str, principal: str, host: str, kind: int) -> None:
        drawn.append((name, principal, host, kind))

    draw()

    async def scenario(broker: OneBroker) -> None:
        decider = broker.services.authorizer
        assert decider is not None
        kept = 0
        for name, principal, host, kind in drawn:
            entry = acl(name, principal, host=host, resource_pattern_type=kind)
            (code,) = await create(broker, entry)
            expected = [] if code else [(name, principal)]
            assert code == ErrorCode.NONE or code in REFUSALS
            assert await described(broker) == expected
            kept += len(expected)
            if expected and kind == PatternType.LITERAL:
                asked = (AclOperation.READ, ResourceType.TOPIC, name)
                assert decider.allows(principal, f"/{host}", *asked)
            assert await deleted(broker, wanted()) == [[name] if expected else []]
        assert kept > len(drawn) // 10

    settings = {"authorizer_class_name": authorizer, "super_users": "User:A"}
    run_broker(tmp_path, scenario, **settings)
