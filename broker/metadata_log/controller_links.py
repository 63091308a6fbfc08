"""Connections to controllers by address, each in the versions that it has in common with us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.network.broker_link import BrokerLink
from broker.network.links import UNPROTECTED, LinkError
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchRequest
from protocol.messages.fetch_snapshot import FetchSnapshotRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.network.broker_link import LinkLimits
    from broker.network.links import Address, LinkSecurity
    from protocol.schema import Request, Response

API_VERSIONS_VERSION: Final = 3
"""Every controller has it."""

SOFTWARE_NAME: Final = "kafka-broker-python"
SOFTWARE_VERSION: Final = "0.1.0"
"""Without a name and a version, Apache Kafka refuses ApiVersions from version 3 on (KIP-511)."""

OLDEST: Final[Mapping[type[Request], int]] = {FetchRequest: 13, FetchSnapshotRequest: 0}
"""The first versions that say all that is needed: Fetch with topic ids."""


class ControllerLinks:
    """Opened at the first request to an address, and again after a failure."""

    def __init__(
        self, client_id: str, limits: LinkLimits, security: LinkSecurity = UNPROTECTED
    ) -> None:
        self._client_id = client_id
        self._limits = limits
        self._security = security
        self._open: dict[Address, _ControllerLink] = {}

    async def ask(self, address: Address, request: Request) -> Response:
        """Send one request and wait for its answer; raises LinkError.

        The answer's records are valid until the next request to the same address.
        """
        link = self._open.get(address)
        if link is None:
            link = self._open[address] = _ControllerLink(self._link(address))
        try:
            return await link.ask(request)
        except BaseException:
            link.close()
            self._open.pop(address, None)
            raise

    def close(self) -> None:
        """Hang up; a request that waits fails with LinkError."""
        for link in self._open.values():
            link.close()

    def _link(self, address: Address) -> BrokerLink:
        host, port = address
        return BrokerLink(
            f"controller at {host}:{port}",
            lambda: address,
            self._client_id,
            self._limits,
            self._security,
        )


class _ControllerLink:
    """One connection, and the versions of its other end."""

    def __init__(self, link: BrokerLink) -> None:
        self._link = link
        self._versions: dict[int, tuple[int, int]] | None = None

    async def ask(self, request: Request) -> Response:
        if self._versions is None:
            self._versions = await self._learn_versions()
        return await self._link.ask(request, self._version_of(type(request)))

    def close(self) -> None:
        self._link.close()

    async def _learn_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        response = await self._link.ask(request, API_VERSIONS_VERSION)
        assert isinstance(response, ApiVersionsResponse), response
        if response.error_code:
            raise LinkError(f"ApiVersions refused: {ErrorCode(response.error_code).name}")
        return {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}

    def _version_of(self, request: type[Request]) -> int:
        assert self._versions is not None
        lowest, highest = self._versions.get(int(request.API_KEY), (0, -1))
        version = min(highest, request.VERSIONS.last)
        if version < max(lowest, OLDEST[request]):
            raise LinkError(
                f"{request.__name__} is served in versions {lowest} to {highest}, "
                f"not in {OLDEST[request]} to {request.VERSIONS.last}"
            )
        return version
