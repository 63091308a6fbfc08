"""ApiVersions 5: who means another cluster or node is sent away (KIP-1242)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

SOFTWARE: dict[str, Any] = {"client_software_name": "a", "client_software_version": "1"}


@pytest.mark.parametrize(
    ("cluster", "node", "code"),
    [
        ("own", 0, ErrorCode.NONE),
        (None, -1, ErrorCode.NONE),
        ("own", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("other", 0, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("own", -1, ErrorCode.INVALID_REQUEST),
        (None, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_client_of_another_cluster_or_node_is_told_to_bootstrap(
    cluster: str | None, node: int, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        cluster_id = broker.services.cluster_id if cluster == "own" else cluster
        request = ApiVersionsRequest(cluster_id=cluster_id, node_id=node, **SOFTWARE)
        answer = await broker.ask(request, 5)
        assert answer.error_code == code
        assert bool(answer.api_keys) == (code is ErrorCode.NONE)

    run_broker(tmp_path, scenario)
