"""What a broker can do (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class ApiVersionsRequest(Request, key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+"):
    """Ask which requests a broker serves, in which versions, and its features."""

    client_software_name: str = string("3+", default="")
    client_software_version: str = string("3+", default="")


class ApiVersionsResponse(Response, request=ApiVersionsRequest, versions="0-4", flexible="3+"):
    """Answer to ApiVersionsRequest."""

    class ApiKey(Struct):
        """One of the `api_keys`."""

        api_key: int = int16()
        min_version: int = int16()
        max_version: int = int16()

    class SupportedFeature(Struct):
        """One of the `supported_features`."""

        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    class FinalizedFeature(Struct):
        """One of the `finalized_features`."""

        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()

    error_code: int = int16()
    api_keys: list[ApiKey] = array(ApiKey)
    throttle_time_ms: int = int32("1+", default=0)
    supported_features: list[SupportedFeature] = array(SupportedFeature, "3+", default=(), tag=0)
    finalized_features_epoch: int = int64("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeature] = array(FinalizedFeature, "3+", default=(), tag=2)
    zk_migration_ready: bool = boolean("3+", default=False, tag=3)


class UpdateFeaturesRequest(Request, key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    """Raise or lower finalised feature levels."""

    class FeatureUpdate(Struct):
        """One of the `feature_updates`."""

        feature: str = string()
        max_version_level: int = int16()
        allow_downgrade: bool = boolean("0", default=False)
        upgrade_type: int = int8("1+", default=1)

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdate] = array(FeatureUpdate)
    validate_only: bool = boolean("1+", default=False)


class UpdateFeaturesResponse(
    Response, request=UpdateFeaturesRequest, versions="0-2", flexible="0+"
):
    """Answer to UpdateFeaturesRequest."""

    class Result(Struct):
        """One of the `results`."""

        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    results: list[Result] = array(Result, "0-1", default=())
