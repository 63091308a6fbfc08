"""Passwords among the dynamic settings, encrypted as Apache Kafka's brokers with ZooKeeper do.

A key is derived (PBKDF2) of `password.encoder.secret` and 256 bytes of salt. The stored text
includes the parameters, so that other keys and ciphers can be configured later:

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,
    salt:<base64>,iterations:4096,initializationVector:<base64>,encryptedPassword:<base64>,
    passwordLength:<UTF-16 units>

Deriving a key takes milliseconds: encode and decode on a thread.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from config.errors import ConfigError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from config.broker import BrokerConfig

DYNAMIC_PASSWORDS = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)
"""Passwords that can be set while brokers run, with a listener's prefix."""

_SALT_BYTES = 256
_BLOCK_BYTES = 16
_GCM_NONCE_BYTES = 12
_TAG_BITS = 128
_MOST_ITERATIONS = 10_000_000
"""Limit of iterations: more would occupy a thread for minutes. Fixed: a tenth is plenty."""

_HASHES = {f"PBKDF2WithHmacSHA{bits}": f"sha{bits}" for bits in ("1", "224", "256", "384", "512")}
_DEFAULT_KEY_FACTORY = "PBKDF2WithHmacSHA512"
_AES_KEY_BITS = (128, 192, 256)
CBC, CTR, GCM = "AES/CBC/PKCS5Padding", "AES/CTR/NoPadding", "AES/GCM/NoPadding"
_CIPHERS = (CBC, CTR, GCM)


class UndecodableError(Exception):
    """A stored password is unreadable: malformed, or kept with another secret."""


def is_password(name: str) -> bool:
    """Return whether the value of a dynamic setting is kept encrypted."""
    return name.endswith(DYNAMIC_PASSWORDS)


@dataclass(frozen=True, slots=True)
class PasswordEncoder:
    """Encodes with the configured parameters, and decodes with the stored ones."""

    secret: str = field(repr=False)
    random_bytes: Callable[[int], bytes] = field(repr=False)
    key_factory: str = _DEFAULT_KEY_FACTORY
    cipher: str = CBC
    key_bits: int = 128
    iterations: int = 4096

    def encode(self, password: str) -> str:
        """Encrypt a password; each time it comes out differently."""
        salt = self.random_bytes(_SALT_BYTES)
        vector = self.random_bytes(_GCM_NONCE_BYTES if self.cipher == GCM else _BLOCK_BYTES)
        key = self._key(self.key_factory, salt, self.iterations, self.key_bits)
        encrypted = _encrypt(self.cipher, key, vector, password.encode())
        fields = {
            "keyFactoryAlgorithm": self.key_factory,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_bits),
            "salt": _text(salt),
            "iterations": str(self.iterations),
            "initializationVector": _text(vector),
            "encryptedPassword": _text(encrypted),
            "passwordLength": str(_utf_16_units(password)),
        }
        if self.cipher == GCM:
            fields["authenticationTagLength"] = str(_TAG_BITS)
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, stored: str) -> str:
        """Decrypt a password. Raises UndecodableError."""
        try:
            return self._decode(_fields(stored))
        except (KeyError, ValueError, OverflowError) as error:
            why = f"{type(error).__name__} while it is decrypted"
        raise UndecodableError(f"the password is malformed, or another secret was used: {why}")

    def _decode(self, fields: Mapping[str, str]) -> str:
        iterations, key_bits = int(fields["iterations"]), int(fields["keyLength"])
        if not 1 <= iterations <= _MOST_ITERATIONS or key_bits not in _AES_KEY_BITS:
            raise ValueError
        salt = base64.b64decode(fields["salt"], validate=True)
        key = self._key(fields["keyFactoryAlgorithm"], salt, iterations, key_bits)
        vector = base64.b64decode(fields["initializationVector"], validate=True)
        encrypted = base64.b64decode(fields["encryptedPassword"], validate=True)
        password = _decrypt(fields["cipherAlgorithm"], key, vector, encrypted).decode()
        if _utf_16_units(password) != int(fields["passwordLength"]):
            raise ValueError
        return password

    def _key(self, key_factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        digest, secret = _HASHES[key_factory], self.secret.encode()
        return hashlib.pbkdf2_hmac(digest, secret, salt, iterations, bits // 8)


def configured_encoder(
    config: BrokerConfig, random_bytes: Callable[[int], bytes]
) -> PasswordEncoder | None:
    """Return the encoder of passwords; None without a secret. Raises ConfigError."""
    if config.password_encoder_secret is None:
        return None
    key_factory = config.password_encoder_keyfactory_algorithm or _DEFAULT_KEY_FACTORY
    cipher, key_bits = config.password_encoder_cipher_algorithm, config.password_encoder_key_length
    if key_factory not in _HASHES:
        why = f"it must be one of {', '.join(_HASHES)}"
        raise invalid("password.encoder.keyfactory.algorithm", key_factory, why)
    if cipher not in _CIPHERS:
        why = f"it must be one of {', '.join(_CIPHERS)}"
        raise invalid("password.encoder.cipher.algorithm", cipher, why)
    if key_bits not in _AES_KEY_BITS:
        why = f"AES has keys of {', '.join(map(str, _AES_KEY_BITS))} bits"
        raise invalid("password.encoder.key.length", key_bits, why)
    iterations = config.password_encoder_iterations
    if iterations > _MOST_ITERATIONS:
        raise invalid("password.encoder.iterations", iterations, f"at most {_MOST_ITERATIONS}")
    return PasswordEncoder(
        config.password_encoder_secret, random_bytes, key_factory, cipher, key_bits, iterations
    )


def encode_passwords(
    settings: Mapping[str, str], encoder: PasswordEncoder | None
) -> dict[str, str]:
    """The settings as they are stored. Raises ConfigError for passwords without an encoder."""
    stored = dict(settings)
    for name, text in settings.items():
        if is_password(name):
            if encoder is None:
                raise ConfigError("Password encoder secret not configured", name)
            stored[name] = encoder.encode(text)
    return stored


def _cipher(name: str, key: bytes, vector: bytes) -> Any:  # noqa: ANN401  # of three kinds
    from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415  # few need it
        Cipher,
        algorithms,
        modes,
    )

    mode = {CBC: modes.CBC, CTR: modes.CTR}[name]
    return Cipher(algorithms.AES(key), mode(vector))


def _encrypt(name: str, key: bytes, vector: bytes, content: bytes) -> bytes:
    if name == GCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(key).encrypt(vector, content, None)
    if name == CBC:
        missing = _BLOCK_BYTES - len(content) % _BLOCK_BYTES
        content += bytes([missing]) * missing
    encryptor = _cipher(name, key, vector).encryptor()
    encrypted: bytes = encryptor.update(content) + encryptor.finalize()
    return encrypted


def _decrypt(name: str, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises KeyError for a cipher there is none of, ValueError for the wrong key."""
    if name == GCM:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        try:
            return AESGCM(key).decrypt(vector, encrypted, None)
        except InvalidTag:
            raise ValueError from None
    decryptor = _cipher(name, key, vector).decryptor()
    content: bytes = decryptor.update(encrypted) + decryptor.finalize()
    if name == CTR:
        return content
    missing = content[-1] if content else 0
    if not 1 <= missing <= _BLOCK_BYTES or content[-missing:] != bytes([missing]) * missing:
        raise ValueError
    return content[:-missing]


def _fields(stored: str) -> dict[str, str]:
    pairs = (pair.rpartition(":") for pair in re.split(r"\s*,\s*", stored))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _utf_16_units(text: str) -> int:
    """Return the length of a string in Java."""
    return len(text.encode("utf-16-le")) // 2
