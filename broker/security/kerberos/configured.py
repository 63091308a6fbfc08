"""GSSAPI of a listener, as it is configured. The library is an extra, imported here only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.runtime.deferred import from_future
from broker.security.kerberos.mechanism import GssapiMechanism
from broker.security.kerberos.principal_names import PrincipalNames
from config.errors import ConfigError
from config.listeners.jaas import KERBEROS_MODULE

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.deferred import Deferred
    from broker.security.sasl.mechanism import Step
    from broker.security.sasl.mechanisms import MechanismSettings

KEY = "sasl.enabled.mechanisms"


def gssapi(settings: MechanismSettings) -> GssapiMechanism:
    """The mechanism, with the broker's key. Raises ConfigError.

    Users of the realm of the broker's own principal are those of the default realm.
    """
    try:
        from broker.security.kerberos.acceptor import Acceptor  # noqa: PLC0415
    except ImportError as error:
        needs = "GSSAPI needs the library of Kerberos: pip install kafka-broker-python[kerberos]"
        raise ConfigError(f"{needs} ({error})", KEY) from None
    try:
        acceptor = Acceptor(settings.options_of(KERBEROS_MODULE))
    except ConfigError as problem:
        raise ConfigError(f"{settings.logins.where}: {problem}", settings.logins.where) from None
    rules = settings.config.sasl_kerberos_principal_to_local_rules
    names = PrincipalNames(rules, acceptor.realm)
    executor = settings.surroundings.threads(1, "gssapi")

    def on_thread(work: Callable[[], Step]) -> Deferred[Step]:
        return from_future(asyncio.get_running_loop().run_in_executor(executor, work))

    return GssapiMechanism(acceptor.context, names, on_thread)
