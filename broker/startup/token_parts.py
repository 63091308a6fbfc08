"""The parts of a broker that have to do with delegation tokens, if it has a secret key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.maintenance.token_expiry import TokenExpiry
from broker.security.sasl.token_credentials import TokenCredentials
from controller.security.delegation_tokens import DelegationTokens, TokenLifetimes
from protocol.uuids import draw_uuid, to_base64

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.services import BrokerServices
    from broker.startup.cluster_parts import Foundation
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore


def delegation_tokens(
    config: BrokerConfig, store: MetadataStore, machine: Machine
) -> DelegationTokens | None:
    """The tokens, yet to be read; None without `delegation.token.secret.key`."""
    secret_key = config.delegation_token_secret_key or config.delegation_token_master_key
    if not secret_key:
        return None
    lifetimes = TokenLifetimes(
        max_ms=config.delegation_token_max_lifetime_ms,
        renewal_ms=config.delegation_token_expiry_time_ms,
    )
    new_id = partial(_new_id, machine.chance.random_bytes)
    tokens = DelegationTokens(store, secret_key, lifetimes, new_id)
    notifications = tokens.notifications
    notifications.on_news = partial(
        machine.supervision.keep, "delegation tokens", notifications.refresh
    )
    return tokens


def let_tokens_log_in(base: Foundation, tokens: DelegationTokens | None) -> None:
    """Have SASL/SCRAM take tokens, if there are any."""
    if tokens is not None:
        base.addresses.authentication.credentials.tokens = TokenCredentials(
            tokens,
            base.machine.clock,
            base.machine.chance.random_bytes,
            base.storage.compute_pool.run,
        )


def token_expiry(services: BrokerServices) -> TokenExpiry | None:
    """Removal of expired tokens while this broker is the controller."""
    tokens, controller = services.delegation_tokens, services.controller
    if tokens is None:
        return None
    clock, timers = services.clock, services.timers
    return TokenExpiry(tokens, lambda: controller.is_active, clock, timers, services.spawn)


def _new_id(random_bytes: Callable[[int], bytes]) -> str:
    """An id as Apache Kafka makes them: a random UUID, in base64, that begins with no dash."""
    return to_base64(draw_uuid(random_bytes))
