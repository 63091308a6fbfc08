"""Values kept elsewhere: a provider resolves `${provider:path:key}` in a value (KIP-297).

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/kafka/secrets
    ssl.keystore.password=${file:/etc/kafka/secrets/tls.properties:keystore.password}

Java class names choose among the three providers that Apache Kafka brings along: keys of a property
file, variables of the environment, and files of a directory by their names. A variable that is not
found stays as written; `unresolved` lists it, so that it can be reported.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from config import properties
from config.errors import ConfigError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Variable:
    """Provider, path and key of one `${…}`."""

    provider: str
    path: str
    key: str


@dataclass(slots=True)
class ConfigProviders:
    """The providers that a configuration names, by name."""

    look_up: Mapping[str, Callable[[Variable], str | None]] = field(default_factory=dict)
    unresolved: list[Variable] = field(default_factory=list)
    """Variables that no provider had, since this was last emptied."""
    files: set[Path] = field(default_factory=set)
    """Files that were read: they may hold secrets."""

    def resolve(self, text: str) -> str:
        """Replace variables by their values. Raises ConfigError for unreadable ones."""

        def value(match: re.Match[str]) -> str:
            variable = Variable(match[1], match[2] or "", match[3])
            look_up = self.look_up.get(variable.provider)
            found = None if look_up is None else look_up(variable)
            if look_up is not None and found is None:
                self.unresolved.append(variable)
            return match[0] if found is None else found

        return _VARIABLE.sub(value, text) if self.look_up else text


def read_providers(
    stated: Mapping[str, str], environment: Mapping[str, str] = NOTHING
) -> ConfigProviders:
    """Make the providers that `config.providers` names. Raises ConfigError."""
    found: dict[str, Callable[[Variable], str | None]] = {}
    providers = ConfigProviders(found)
    for name in filter(None, (part.strip() for part in stated.get(PROVIDERS, "").split(","))):
        class_key = f"{PROVIDERS}.{name}.class"
        class_name = stated.get(class_key, "").strip()
        if not class_name:
            continue  # as in Apache Kafka, a name alone is not a provider
        parameters = _Parameters(stated, f"{PROVIDERS}.{name}.param.")
        match class_name.removeprefix(_PACKAGE):
            case "FileConfigProvider":
                found[name] = _file_provider(parameters.allowed_paths(), providers.files)
            case "DirectoryConfigProvider":
                found[name] = _directory_provider(parameters.allowed_paths(), providers.files)
            case "EnvVarConfigProvider":
                found[name] = _environment_provider(parameters.pattern(), environment)
            case _:
                why = "Could not load config provider class or one of its dependencies"
                raise invalid(class_key, class_name, why)
    return providers


def is_of_provider(name: str) -> bool:
    """Return whether a key configures a provider, and is not a configuration key itself."""
    return name.startswith(f"{PROVIDERS}.")


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Parameters of one provider in a configuration."""

    stated: Mapping[str, str]
    prefix: str

    def allowed_paths(self) -> list[str] | None:
        """The paths below which files may be read; None for all of them."""
        name = f"{self.prefix}allowed.paths"
        text = self.stated.get(name, "").strip()
        if not text:
            return None
        paths = [os.path.normpath(path) for path in text.split(",")]
        for path in paths:
            if not Path(path).is_absolute():
                raise ConfigError(f"{name}: Path {path} is not absolute", name)
            if not Path(path).exists():
                raise ConfigError(f"{name}: Path {path} does not exist", name)
        return paths

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of the environment variables that may be read."""
        name = f"{self.prefix}allowlist.pattern"
        text = self.stated.get(name, ".*").strip()
        try:
            return re.compile(text)
        except re.error as error:
            raise invalid(name, text, str(error)) from None


def _file_provider(
    allowed_paths: Iterable[str] | None, files: set[Path]
) -> Callable[[Variable], str | None]:
    def look_up(variable: Variable) -> str | None:
        path = _permitted(variable.path, allowed_paths)
        if path is None:
            return None
        files.add(path)
        try:
            text = path.read_text(encoding="utf-8")
            entries = properties.load(text)
        except (OSError, UnicodeDecodeError, ConfigError):
            raise ConfigError(f"Could not read properties from file {path}") from None
        values = {entry.name: entry.value for entry in entries}
        return values.get(variable.key)

    return look_up


def _directory_provider(
    allowed_paths: Iterable[str] | None, files: set[Path]
) -> Callable[[Variable], str | None]:
    def look_up(variable: Variable) -> str | None:
        directory = _permitted(variable.path, allowed_paths)
        if directory is None or "/" in variable.key:
            return None
        path = directory / variable.key
        try:
            if not path.is_file():
                return None
            files.add(path)
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            why = f"Could not read file {path} for property {variable.key}"
            raise ConfigError(why) from None

    return look_up


def _environment_provider(
    pattern: re.Pattern[str], environment: Mapping[str, str]
) -> Callable[[Variable], str | None]:
    def look_up(variable: Variable) -> str | None:
        if variable.path:
            why = "Path is not supported for EnvVarConfigProvider, invalid value"
            raise ConfigError(f"{why} '{variable.path}'")
        return environment.get(variable.key) if pattern.fullmatch(variable.key) else None

    return look_up


def _permitted(path: str, allowed_paths: Iterable[str] | None) -> Path | None:
    """Return the path, if it is allowed; `..` is resolved first."""
    if not path:
        return None
    if allowed_paths is None:
        return Path(path)
    normal = Path(os.path.normpath(path))
    return normal if any(normal.is_relative_to(allowed) for allowed in allowed_paths) else None
