"""SASL OAUTHBEARER."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    LOW,
    boolean,
    class_name,
    integer,
    long,
    optional_strings,
    password,
    string,
)
from config.rules import OneOf


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OauthKeys:
    """SASL OAUTHBEARER."""

    sasl_login_connect_timeout_ms: int | None = integer(None, importance=LOW, acts=True)
    """Connection timeout for the token provider."""

    sasl_login_read_timeout_ms: int | None = integer(None, importance=LOW, acts=True)
    """Read timeout for the token provider's response."""

    sasl_login_retry_backoff_max_ms: int = long(10_000, importance=LOW)
    """Longest wait before the token provider is asked again."""

    sasl_login_retry_backoff_ms: int = long(100, importance=LOW)
    """First wait before the token provider is asked again."""

    sasl_oauthbearer_allow_unverified_audience: bool = boolean(False, acts=True)
    """Accept tokens for any audience where no audience is expected."""

    sasl_oauthbearer_allow_unverified_issuer: bool = boolean(False, acts=True)
    """Accept tokens of any issuer where no issuer is expected."""

    sasl_oauthbearer_assertion_algorithm: str = string(
        "RS256", rule=OneOf(("ES256", "RS256"), ignore_case=True)
    )
    """Algorithm that signs the assertion."""

    sasl_oauthbearer_assertion_claim_aud: str | None = string(None)
    """Audience the assertion claims."""

    sasl_oauthbearer_assertion_claim_exp_seconds: int = integer(
        300, low=0, high=86_400, importance=LOW
    )
    """Seconds for which the assertion is valid."""

    sasl_oauthbearer_assertion_claim_iss: str | None = string(None)
    """Issuer the assertion claims."""

    sasl_oauthbearer_assertion_claim_jti_include: bool = boolean(False)
    """Include a unique id (`jti`) in the assertion."""

    sasl_oauthbearer_assertion_claim_nbf_seconds: int = integer(
        60, low=0, high=3600, importance=LOW
    )
    """Seconds by which the assertion's validity is dated back."""

    sasl_oauthbearer_assertion_claim_sub: str | None = string(None)
    """Subject the assertion claims."""

    sasl_oauthbearer_assertion_file: str | None = string(None)
    """File with a ready-made assertion."""

    sasl_oauthbearer_assertion_private_key_file: str | None = string(None)
    """File with the key that signs the assertion."""

    sasl_oauthbearer_assertion_private_key_passphrase: str | None = password()
    """Password of that file."""

    sasl_oauthbearer_assertion_template_file: str | None = string(None)
    """File with headers and claims the assertion starts from."""

    sasl_oauthbearer_client_credentials_client_id: str | None = string(None, acts=True)
    """Client id shown to the token provider."""

    sasl_oauthbearer_client_credentials_client_secret: str | None = password(acts=True)
    """Secret shown to the token provider."""

    sasl_oauthbearer_clock_skew_seconds: int = integer(30, importance=LOW, acts=True)
    """Seconds by which clocks may differ when a token is checked."""

    sasl_oauthbearer_expected_audience: tuple[str, ...] = optional_strings(
        importance=LOW, acts=True
    )
    """Audiences a token may have."""

    sasl_oauthbearer_expected_issuer: str | None = string(None, importance=LOW, acts=True)
    """Issuer a token must have."""

    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(3_600_000, importance=LOW, acts=True)
    """Interval at which the provider's keys are fetched."""

    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        10_000, importance=LOW, acts=True
    )
    """Longest wait before the keys are fetched again."""

    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(100, importance=LOW, acts=True)
    """First wait before the keys are fetched again."""

    sasl_oauthbearer_jwks_endpoint_url: str | None = string(None, acts=True)
    """URL of the provider's keys."""

    sasl_oauthbearer_jwt_retriever_class: str | None = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
    )
    """Java class that obtains tokens."""

    sasl_oauthbearer_jwt_validator_class: str | None = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", acts=True
    )
    """Java class that checks tokens."""

    sasl_oauthbearer_scope: str | None = string(None, acts=True)
    """Scope asked of the token provider."""

    sasl_oauthbearer_scope_claim_name: str = string("scope", importance=LOW, acts=True)
    """Name of the claim that holds a token's scope."""

    sasl_oauthbearer_sub_claim_name: str = string("sub", importance=LOW, acts=True)
    """Name of the claim that holds a token's subject."""

    sasl_oauthbearer_token_endpoint_url: str | None = string(None, acts=True)
    """URL of the token provider."""
