"""Conversion of a broker's dynamic settings to their stored form and back.

Passwords are encrypted in the store. Variables of `config.providers` are stored as written and
resolved when read. Both take time: do it on a thread.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.passwords.encoder import (
    PasswordEncoder,
    UndecodableError,
    configured_encoder,
    encode_passwords,
    is_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from config.broker import BrokerConfig
    from config.passwords.providers import ConfigProviders


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """Reads and writes stored settings."""

    providers: ConfigProviders
    encoder: PasswordEncoder | None
    old_encoder: PasswordEncoder | None
    """With `password.encoder.old.secret`; None if that or the new one is not set."""

    def readable(self, stored: Mapping[str, str]) -> tuple[dict[str, str], list[ConfigError]]:
        """Return the plain values of stored settings, and errors for unreadable ones, left out."""
        settings: dict[str, str] = {}
        problems: list[ConfigError] = []
        for name, text in stored.items():
            try:
                plain = self._decoded(name, text) if is_password(name) else text
                settings[name] = self.providers.resolve(plain)
            except ConfigError as problem:
                problems.append(ConfigError(f"{name}: {problem}", name))
        return settings, problems

    def resolved(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Resolve the variables in settings sent by a client. Raises ConfigError."""
        return {name: self.providers.resolve(text) for name, text in settings.items()}

    def storable(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Encrypt the passwords. Raises ConfigError."""
        return encode_passwords(settings, self.encoder)

    def kept_with_old_secret(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The passwords that were encrypted with the old secret, encrypted with the new one."""
        if self.encoder is None or self.old_encoder is None:
            return {}
        renewed: dict[str, str] = {}
        for name, text in stored.items():
            try:
                if is_password(name):
                    renewed[name] = self.encoder.encode(self.old_encoder.decode(text))
            except UndecodableError:
                continue  # it is kept with the new secret already
        return renewed

    def _decoded(self, name: str, text: str) -> str:
        if self.encoder is None:
            raise ConfigError("Password encoder secret not configured", name)
        try:
            return self.encoder.decode(text)
        except UndecodableError as error:
            raise ConfigError(str(error), name) from None


def needs_a_thread(settings: Mapping[str, str]) -> bool:
    """Return whether any of these settings is encrypted or has variables."""
    return any(is_password(name) or "${" in text for name, text in settings.items())


def stored_settings_of(
    config: BrokerConfig, random_bytes: Callable[[int], bytes]
) -> StoredSettings:
    """Build them from a property file's keys. Raises ConfigError."""
    encoder = configured_encoder(config, random_bytes)
    old_encoder, old_secret = None, config.password_encoder_old_secret
    if encoder is not None and old_secret is not None:
        old_encoder = dataclasses.replace(encoder, secret=old_secret)
    return StoredSettings(config.providers, encoder, old_encoder)
