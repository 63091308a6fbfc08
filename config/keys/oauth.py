"""SASL OAUTHBEARER."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, boolean, class_name, integer, long, password, string, strings
from config.rules import OneOf


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OauthKeys:
    """SASL OAUTHBEARER."""

    sasl_login_connect_timeout_ms: int | None = integer(None, importance=LOW)

    sasl_login_read_timeout_ms: int | None = integer(None, importance=LOW)

    sasl_login_retry_backoff_max_ms: int = long(10_000, importance=LOW)

    sasl_login_retry_backoff_ms: int = long(100, importance=LOW)

    sasl_oauthbearer_assertion_algorithm: str = string(
        "RS256", rule=OneOf(("ES256", "RS256"), ignore_case=True)
    )

    sasl_oauthbearer_assertion_claim_aud: str | None = string(None)

    sasl_oauthbearer_assertion_claim_exp_seconds: int = integer(
        300, low=0, high=86_400, importance=LOW
    )

    sasl_oauthbearer_assertion_claim_iss: str | None = string(None)

    sasl_oauthbearer_assertion_claim_jti_include: bool = boolean(False)

    sasl_oauthbearer_assertion_claim_nbf_seconds: int = integer(
        60, low=0, high=3600, importance=LOW
    )

    sasl_oauthbearer_assertion_claim_sub: str | None = string(None)

    sasl_oauthbearer_assertion_file: str | None = string(None)

    sasl_oauthbearer_assertion_private_key_file: str | None = string(None)

    sasl_oauthbearer_assertion_private_key_passphrase: str | None = password()

    sasl_oauthbearer_assertion_template_file: str | None = string(None)

    sasl_oauthbearer_client_credentials_client_id: str | None = string(None)

    sasl_oauthbearer_client_credentials_client_secret: str | None = password()

    sasl_oauthbearer_clock_skew_seconds: int = integer(30, importance=LOW)

    sasl_oauthbearer_expected_audience: tuple[str, ...] = strings(importance=LOW)

    sasl_oauthbearer_expected_issuer: str | None = string(None, importance=LOW)

    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(3_600_000, importance=LOW)

    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(10_000, importance=LOW)

    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(100, importance=LOW)

    sasl_oauthbearer_jwks_endpoint_url: str | None = string(None)

    sasl_oauthbearer_jwt_retriever_class: str | None = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
    )

    sasl_oauthbearer_jwt_validator_class: str | None = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
    )

    sasl_oauthbearer_scope: str | None = string(None)

    sasl_oauthbearer_scope_claim_name: str = string("scope", importance=LOW)

    sasl_oauthbearer_sub_claim_name: str = string("sub", importance=LOW)

    sasl_oauthbearer_token_endpoint_url: str | None = string(None)
