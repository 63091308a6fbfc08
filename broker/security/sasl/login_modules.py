"""The login modules of a mechanism: from its key, or from the JAAS file as Apache Kafka finds them.

    listener.name.external.plain.sasl.jaas.config    one module, and before all else
    section external.KafkaServer of the file         modules of all mechanisms of the listener
    section KafkaServer                              those of all listeners

Without listener and mechanism in front of it, `sasl.jaas.config` is ignored, as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.listeners.jaas import LoginModule, parse_login_module
from config.listeners.listener_config import for_listener, prefix_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.broker import BrokerConfig

    Sections = Mapping[str, Sequence[LoginModule]]

SECTION = "KafkaServer"


@dataclass(frozen=True, slots=True)
class LoginModules:
    """Login modules of one mechanism of one listener."""

    where: str
    """The key or the section that they are from, for errors."""
    modules: Sequence[LoginModule]

    def options_of(self, class_name: str) -> dict[str, str]:
        """The options of the modules of that class, the first first."""
        options: dict[str, str] = {}
        for module in self.modules:
            if module.class_name == class_name:
                options = module.options | options
        return options


def login_modules(
    config: BrokerConfig, listener: str, mechanism: str, sections: Sections
) -> LoginModules:
    """Find them; `sections` are those of the JAAS file. Raises ConfigError when there are none."""
    key = f"{prefix_of(listener, mechanism)}sasl.jaas.config"
    mechanism_config = for_listener(config, listener, mechanism)
    text = mechanism_config.sasl_jaas_config if key in config.stated else None
    if text is not None:
        try:
            return LoginModules(key, [parse_login_module(text)])
        except ConfigError as problem:
            raise ConfigError(f"{key}: {problem}", key) from None
    for section in (f"{listener.lower()}.{SECTION}", SECTION):
        if section in sections:
            return LoginModules(f"section {section} of the JAAS file", sections[section])
    raise ConfigError(
        f"{key} is missing: it names the login module of {mechanism} for listener {listener} "
        f"(nor has a JAAS file a section {SECTION})",
        key,
    )
