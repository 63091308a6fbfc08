"""API versions and features of a broker (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class ApiVersionsRequest(Request, key=ApiKey.API_VERSIONS, versions="0-5", flexible="3+"):
    """Ask which requests a broker serves, in which versions, and its features.

    The first request on a connection. A version that the broker does not have is answered in v0,
    with UNSUPPORTED_VERSION and the versions of ApiVersions itself (KIP-511).
    """

    client_software_name: str = string("3+", default="")
    """Letters, digits, dots and dashes; INVALID_REQUEST otherwise (KIP-511)."""
    client_software_version: str = string("3+", default="")
    cluster_id: str | None = string("5+", default=None, nullable="5+")
    """Cluster and node that the client means to reach (KIP-1242); null and -1 if not known."""
    node_id: int = int32("5+", default=-1)


class ApiVersionsResponse(Response, request=ApiVersionsRequest, versions="0-5", flexible="3+"):
    """Answer to ApiVersionsRequest; its header has no tags in any version."""

    class ApiKey(Struct):
        """A request that is served, and its versions."""

        api_key: int = int16()
        min_version: int = int16()
        max_version: int = int16()

    class SupportedFeature(Struct):
        """Levels of a feature that this broker can do (KIP-584)."""

        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    class FinalizedFeature(Struct):
        """Levels of a feature that the cluster agreed on (KIP-584)."""

        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()

    error_code: int = int16()
    api_keys: list[ApiKey] = array(ApiKey)
    throttle_time_ms: int = int32("1+", default=0)
    supported_features: list[SupportedFeature] = array(SupportedFeature, "3+", default=(), tag=0)
    finalized_features_epoch: int = int64("3+", default=-1, tag=1)
    """Grows with each change of the finalised features; -1 if not known."""
    finalized_features: list[FinalizedFeature] = array(FinalizedFeature, "3+", default=(), tag=2)
    zk_migration_ready: bool = boolean("3+", default=False, tag=3)
    """Of a KRaft controller: whether ZooKeeper brokers may migrate to it (KIP-866)."""


class UpdateFeaturesRequest(Request, key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    """Raise or lower finalised feature levels."""

    class FeatureUpdate(Struct):
        """A new level for one feature."""

        feature: str = string()
        max_version_level: int = int16()
        """Below 1 removes the feature."""
        allow_downgrade: bool = boolean("0", default=False)
        upgrade_type: int = int8("1+", default=1)
        """1 upgrade, 2 safe downgrade, 3 unsafe downgrade."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdate] = array(FeatureUpdate)
    validate_only: bool = boolean("1+", default=False)


class UpdateFeaturesResponse(
    Response, request=UpdateFeaturesRequest, versions="0-2", flexible="0+"
):
    """Answer to UpdateFeaturesRequest."""

    class Result(Struct):
        """Result for one feature."""

        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    results: list[Result] = array(Result, "0-1", default=())
