"""`ssl.principal.mapping.rules`: mapping of a certificate's name to the name of a principal.

Rules are tried in order, and the first whose pattern matches the whole name decides:

    RULE:^CN=(.*?),OU=Sales.*$/$1/L, DEFAULT

`$1` is the match of the first group, `L` and `U` make the result lower or upper case, and DEFAULT
takes the name as it is. A name without a matching rule is refused. Apache's `SslPrincipalMapper`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from config.errors import invalid

KEY: Final = "ssl.principal.mapping.rules"
_TEXT = r"((?:\\.|[^\\/])*)"
_RULE: Final = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_TEXT}/{_TEXT}/([LU]?)|)\s*(?:,|$)", re.DOTALL)
_JAVA_GROUP_NAME: Final = re.compile(r"\(\?<(?=[a-zA-Z])")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}", re.DOTALL)


class UnmappedNameError(Exception):
    """No rule matches the name in a certificate."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule; DEFAULT has no pattern."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The principal's name; None if the rule is for other names."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return {"L": mapped.lower, "U": mapped.upper}.get(self.case, lambda: mapped)()

    def _replaced(self, match: re.Match[str]) -> str:
        def resolved(reference: re.Match[str]) -> str:
            literal, number, group = reference.groups()
            if literal is not None:
                return str(literal)
            return match[group] or "" if number is None else _numbered(match, number)

        return _REFERENCE.sub(resolved, self.replacement)


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Raises ConfigError."""
        self._rules = tuple(_parse(rules.strip()))

    def principal(self, name: str) -> str:
        """The principal of whom a certificate names so. Raises UnmappedNameError."""
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return f"User:{mapped}"
        raise UnmappedNameError(f"no rule of {KEY} matches {name}")


def _parse(text: str) -> list[_Rule]:
    rules, position = [], 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise invalid(KEY, text, f"no rule: {text[position:]}")
        position = match.end()
        default, pattern, replacement, case = match.groups()
        if default:
            rules.append(_Rule())
        elif pattern is not None:
            rules.append(_rule(text, pattern, replacement, case))
    return rules


def _rule(text: str, pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(_JAVA_GROUP_NAME.sub("(?P<", pattern))
    except re.error as error:
        raise invalid(KEY, text, f"{pattern} is no pattern: {error}") from None
    for _, number, group in _REFERENCE.findall(replacement):
        if (number and not compiled.groups) or (group and group not in compiled.groupindex):
            raise invalid(KEY, text, f"{replacement} names a group that {pattern} has not")
    return _Rule(compiled, replacement, case)


def _numbered(match: re.Match[str], digits: str) -> str:
    """Replacement for `$digits`, by their longest prefix that is a group's number; else text."""
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= match.re.groups:
            return (match[int(digits[:end])] or "") + digits[end:]
    return f"${digits}"
