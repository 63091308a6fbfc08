"""OAUTHBEARER of a listener, as it is configured.

`listener.name.x.oauthbearer.sasl.server.callback.handler.class` chooses how tokens are checked;
without it they need no signature, as in Apache Kafka.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.runtime.throttled_log import ThrottledLog
from broker.security.oauth.jwt_validation import Expectations, JwtValidator
from broker.security.oauth.mechanism import OauthBearerMechanism
from broker.security.oauth.unsecured import UnsecuredValidator
from config.errors import ConfigError
from config.listeners.jaas import OAUTHBEARER_MODULE

if TYPE_CHECKING:
    from broker.security.oauth.bearer_token import TokenValidator
    from broker.security.sasl.mechanisms import MechanismSettings
    from config.broker import BrokerConfig

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
JWT_HANDLERS = frozenset(
    (
        f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",  # before Apache Kafka 4
    )
)
VALIDATORS = frozenset((f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator"))
HANDLER_KEY = "sasl.server.callback.handler.class"
VALIDATOR_KEY = "sasl.oauthbearer.jwt.validator.class"

logger = logging.getLogger(__name__)


def oauthbearer(settings: MechanismSettings) -> OauthBearerMechanism:
    """The mechanism, with what checks its tokens. Raises ConfigError."""
    refused = ThrottledLog(logger, settings.surroundings.clock)
    return OauthBearerMechanism(
        _validator(settings),
        settings.surroundings.clock,
        lambda reason: refused.warn(f"OAUTHBEARER token refused: {reason}"),
    )


def _validator(settings: MechanismSettings) -> TokenValidator:
    config = settings.config
    handler = config.sasl_server_callback_handler_class
    if handler in (None, UNSECURED_HANDLER):
        logger.warning("OAUTHBEARER believes tokens that nobody has signed: set %s", HANDLER_KEY)
        return UnsecuredValidator(settings.options_of(OAUTHBEARER_MODULE))
    if handler not in JWT_HANDLERS:
        known = ", ".join((*sorted(JWT_HANDLERS), UNSECURED_HANDLER))
        raise ConfigError(f"{HANDLER_KEY} of OAUTHBEARER is none of: {known}", HANDLER_KEY)
    if config.sasl_oauthbearer_jwt_validator_class not in VALIDATORS:
        known = ", ".join(sorted(VALIDATORS))
        raise ConfigError(f"{VALIDATOR_KEY} is none of: {known}", VALIDATOR_KEY)
    _check_expectations(config)
    return JwtValidator(settings.surroundings.keys.of(config), _expectations(config))


def _check_expectations(config: BrokerConfig) -> None:
    """Raise ConfigError if tokens for others would be accepted by default (as 4.4.0)."""
    for claim, is_expected, is_allowed in (
        (
            "audience",
            bool(config.sasl_oauthbearer_expected_audience),
            config.sasl_oauthbearer_allow_unverified_audience,
        ),
        (
            "issuer",
            config.sasl_oauthbearer_expected_issuer is not None,
            config.sasl_oauthbearer_allow_unverified_issuer,
        ),
    ):
        if not is_expected and not is_allowed:
            expected = f"sasl.oauthbearer.expected.{claim}"
            allowing = f"sasl.oauthbearer.allow.unverified.{claim}"
            reason = f"OAUTHBEARER needs {expected}, or {allowing}=true to take tokens of any"
            raise ConfigError(reason, expected)


def _expectations(config: BrokerConfig) -> Expectations:
    return Expectations(
        audiences=frozenset(config.sasl_oauthbearer_expected_audience),
        issuer=config.sasl_oauthbearer_expected_issuer,
        clock_skew_seconds=config.sasl_oauthbearer_clock_skew_seconds,
        scope_claim=config.sasl_oauthbearer_scope_claim_name,
        name_claim=config.sasl_oauthbearer_sub_claim_name,
    )
