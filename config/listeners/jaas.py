"""`sasl.jaas.config`: login modules with their options, in the syntax of JAAS.

A login module is written `class flag name=value … ;`. Apache Kafka reads it with Java's
StreamTokenizer, and so do we: `//` and `/* */` are comments, values stand in single or double
quotes unless they are words, and a bare number is not a value.

No error quotes the text: it holds passwords.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"

OCTAL = "01234567"
FLAGS = {"required", "requisite", "sufficient", "optional"}

_PIECES = r"""
    [\x00-\x20]+                                     # white space
  | /\*.*?(?:\*/|\Z) | /.?[^\r\n]*                   # comments; a single slash begins one as well
  | "(?P<double>(?:\\.|[^"\\\r\n])*)(?:"|(?=[\r\n])|\Z)
  | '(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|(?=[\r\n])|\Z)
  | (?P<number>-?(?:\d+\.?\d*|\.\d*))
  | (?P<word>[A-Za-z_$\xa0-\U0010ffff][-A-Za-z0-9._$\xa0-\U0010ffff]*)
  | (?P<mark>.)
"""
"""Compiled when it is first used: its classes take milliseconds, in each process that starts."""
_PIECE_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module."""

    class_name: str
    options: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str | None
    """Text of a word or a quotation; None for other tokens, as with StreamTokenizer."""
    mark: str = ""


def parse_login_module(text: str) -> LoginModule:
    """The login module of `sasl.jaas.config`, of which there has to be one. Raises ConfigError."""
    modules = list(_modules(_tokens(text)))
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    if len(modules) > 1:
        found = f"JAAS config property contains {len(modules)} login modules"
        raise ConfigError(f"{found}, should be 1 module")
    return modules[0]


def parse_sections(text: str) -> dict[str, list[LoginModule]]:
    """The contents of a JAAS file: login modules by the name of their section.

    A section is written `Name { module; … };`. Raises ConfigError.
    """
    tokens = _tokens(text)
    sections = {}
    for token in tokens:
        if token.text is None or _next(tokens).mark != "{":
            raise ConfigError("JAAS file: a section is written as Name { modules };")
        sections[token.text] = list(_modules(tokens, until="}"))
        if _next(tokens).mark != ";":
            raise ConfigError(f"JAAS file: no semicolon after section {token.text}")
    return sections


def _modules(tokens: Iterator[_Token], until: str = "") -> Iterator[LoginModule]:
    for token in tokens:
        if until and token.mark == until:
            return
        flag = next(tokens, None)
        if flag is None:
            raise ConfigError("Login module control flag not specified in JAAS config")
        if flag.text is None:
            raise ConfigError("Login module control flag is not available in the JAAS config")
        if flag.text.lower() not in FLAGS:
            # Not the flag itself: where a semicolon is missing it is anything, a password even.
            raise ConfigError("Invalid login module control flag in JAAS config")
        if not token.text:
            raise ConfigError("Login module not specified in JAAS config")
        yield LoginModule(token.text, dict(_options(tokens)))
    if until:
        raise ConfigError(f"JAAS file: a section is not closed by {until}")


def _options(tokens: Iterator[_Token]) -> Iterator[tuple[str, str]]:
    for token in tokens:
        if token.mark == ";":
            return
        name = token.text
        sign = next(tokens, None)
        value = next(tokens, None) if sign is not None and sign.mark == "=" else None
        if value is None or value.text is None:
            raise ConfigError("Value not specified for a key in JAAS config")
        yield name or "", value.text
    raise ConfigError("JAAS config entry not terminated by semi-colon")


def _next(tokens: Iterator[_Token]) -> _Token:
    return next(tokens, _Token(None))


def _tokens(text: str) -> Iterator[_Token]:
    for match in re.finditer(_PIECES, text, _PIECE_FLAGS):
        kind = match.lastgroup
        if kind in ("double", "single"):
            yield _Token(_ESCAPE.sub(_unescaped, match.group(kind)))
        elif kind == "word":
            yield _Token(match.group())
        elif kind == "number":
            yield _Token(None)
        elif kind == "mark":
            yield _Token(None, match.group())


def _unescaped(match: re.Match[str]) -> str:
    what = match.group(1)
    return chr(int(what, 8)) if what[0] in OCTAL else _ESCAPED.get(what, what)
