"""User names out of Kerberos principals: `sasl.kerberos.principal.to.local.rules`.

    DEFAULT                                     alice@HERE, alice/desk@HERE     ->  alice
    RULE:[1:$1@$0](.*@THERE)s/@.*/-guest/       alice@THERE                     ->  alice-guest
    RULE:[2:$1-$2]/L                            Alice/Desk@THERE                ->  alice-desk

A rule applies to names with a number of components and formats them (`$0` is the realm); it may
require the result to match, replace in it, and change its case. The first rule that applies counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = "sasl.kerberos.principal.to.local.rules"

_PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:\[(?P<count>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<old>[^/]*)/(?P<new>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d*)")
_NOT_SIMPLE = re.compile(r"[/@]")


class NoLocalNameError(Exception):
    """A principal has no user name here."""


@dataclass(frozen=True, slots=True)
class _Rule:
    component_count: int
    format: str
    match: re.Pattern[str] | None
    old: re.Pattern[str] | None
    new: str
    """As `re.sub` takes it."""
    replaces_all: bool
    case: str

    def apply(self, parameters: Sequence[str]) -> str | None:
        """The name; None if the rule is not for this principal."""
        if len(parameters) - 1 != self.component_count:
            return None
        name = _PARAMETER.sub(lambda found: _parameter(found[1], parameters), self.format)
        if self.match is not None and not self.match.fullmatch(name):
            return None
        if self.old is not None:
            name = self.old.sub(self.new, name, count=0 if self.replaces_all else 1)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class PrincipalNames:
    """The rules of one listener."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """`default_realm` is that whose users have their own names. Raises ConfigError."""
        self._rules = [_read(text, default_realm) for text in rules]

    def local_name(self, principal: str) -> str:
        """User name of a principal. Raises NoLocalNameError."""
        match = _PRINCIPAL.fullmatch(principal)
        if match is None:
            if "@" in principal:
                raise NoLocalNameError(f"{principal!r} is no Kerberos principal")
            return principal
        service, host, realm = match.groups()
        parameters = (realm, service) if host is None else (realm, service, host)
        for rule in self._rules:
            name = rule.apply(parameters)
            if name is None:
                continue
            if _NOT_SIMPLE.search(name):
                raise NoLocalNameError(f"a rule makes {name!r} of {principal!r}")
            return name
        raise NoLocalNameError(f"no rule is for {principal!r}")


@dataclass(frozen=True, slots=True)
class _Default:
    realm: str

    def apply(self, parameters: Sequence[str]) -> str | None:
        """The first component of a principal of the default realm."""
        return parameters[1] if parameters[0] == self.realm else None


def _read(text: str, default_realm: str) -> _Rule | _Default:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{KEY}: Invalid rule: {text}", KEY)
    if match["default"]:
        return _Default(default_realm)
    try:
        return _Rule(
            component_count=int(match["count"]),
            format=match["format"],
            match=None if match["match"] is None else re.compile(match["match"]),
            old=None if match["old"] is None else re.compile(match["old"]),
            new=re.sub(r"\$(\d)", r"\\\1", (match["new"] or "").replace("\\", r"\\")),
            replaces_all=match["all"] is not None,
            case=match["case"] or "",
        )
    except re.error as error:
        raise ConfigError(f"{KEY}: Invalid rule: {text}: {error}", KEY) from None


def _parameter(number: str, parameters: Sequence[str]) -> str:
    if not number:
        return ""
    if int(number) >= len(parameters):
        raise NoLocalNameError(f"a rule asks for ${number} of {len(parameters)}")
    return parameters[int(number)]
