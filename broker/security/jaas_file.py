"""The JAAS file: login modules by section, found where Apache Kafka's scripts have it named.

They hand `KAFKA_OPTS` to Java, and Java reads the file that a system property there names::

    export KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/jaas.conf"
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.listeners.jaas import parse_sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.listeners.jaas import LoginModule

OPTIONS_VARIABLE = "KAFKA_OPTS"
FILE_PROPERTY = "java.security.auth.login.config"


def java_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Java's system properties, as far as `KAFKA_OPTS` sets them. Raises ConfigError."""
    try:
        words = shlex.split(environment.get(OPTIONS_VARIABLE, ""))
    except ValueError:
        raise ConfigError(f"{OPTIONS_VARIABLE}: a quotation is not closed") from None
    stated = (word[2:].partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in stated}


def login_sections(environment: Mapping[str, str]) -> dict[str, list[LoginModule]]:
    """Sections of the JAAS file; none if no file is named. Raises ConfigError."""
    path = java_properties(environment).get(FILE_PROPERTY)
    if not path:
        return {}
    try:
        text = Path(path.removeprefix("file:")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{FILE_PROPERTY}={path} cannot be read: {error}") from None
    return parse_sections(text)
