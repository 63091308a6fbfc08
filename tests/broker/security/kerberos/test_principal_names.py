"""User names out of Kerberos principals."""

from __future__ import annotations

import pytest

from broker.security.kerberos.principal_names import NoLocalNameError, PrincipalNames
from config.errors import ConfigError


def name(principal: str, *rules: str) -> str:
    return PrincipalNames(rules or ("DEFAULT",), "HERE").local_name(principal)


@pytest.mark.parametrize(
    ("principal", "rules", "expected"),
    [
        ("alice@HERE", (), "alice"),
        ("alice/desk@HERE", (), "alice"),
        ("alice", (), "alice"),
        ("alice@THERE", ("RULE:[1:$1@$0](.*@THERE)s/@.*/-guest/", "DEFAULT"), "alice-guest"),
        ("alice@HERE", ("RULE:[1:$1@$0](.*@THERE)s/@.*/-guest/", "DEFAULT"), "alice"),
        ("Alice/Desk@THERE", ("RULE:[2:$1-$2]/L",), "alice-desk"),
        ("Alice/Desk@THERE", ("RULE:[2:$2.$1]/U",), "DESK.ALICE"),
        ("aXbXc@HERE", ("RULE:[1:$1]s/X/-/",), "a-bXc"),
        ("aXbXc@HERE", ("RULE:[1:$1]s/X/-/g",), "a-b-c"),
        ("aXbXc@HERE", ("RULE:[1:$1]s/X/-/g/U",), "A-B-C"),
        ("alice@HERE", (r"RULE:[1:$1]s/a(l)i/$1$1/",), "llce"),
        ("alice@HERE", ("RULE:[2:$1]", "RULE:[1:user-$1]"), "user-alice"),
        ("alice@HERE", ("RULE:[1:$1$]",), "alice"),
    ],
)
def test_first_rule_that_applies_names_the_user(
    principal: str, rules: tuple[str, ...], expected: str
) -> None:
    assert name(principal, *rules) == expected


@pytest.mark.parametrize(
    ("principal", "rules", "why"),
    [
        ("alice@THERE", (), "no rule is for"),
        ("alice@HERE", ("RULE:[2:$1]",), "no rule is for"),
        ("alice@HERE", ("RULE:[1:$1](bob)",), "no rule is for"),
        ("alice@HERE", ("RULE:[1:$1@$0]",), "makes 'alice@HERE'"),
        ("alice@HERE", ("RULE:[1:$2]",), r"\$2 of 2"),
        ("a/b/c@HERE", (), "no Kerberos principal"),
        ("a@b@HERE", (), "no Kerberos principal"),
    ],
)
def test_a_principal_without_a_local_name_is_refused(
    principal: str, rules: tuple[str, ...], why: str
) -> None:
    with pytest.raises(NoLocalNameError, match=why):
        name(principal, *rules)


@pytest.mark.parametrize(
    "rule",
    ["", "default", "RULE:", "RULE:[x:$1]", "RULE:[1:$1]s/a/b", "RULE:[1:$1](*)", "DEFAULT "],
)
def test_an_invalid_rule_is_refused_at_start(rule: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rule"):
        PrincipalNames([rule], "HERE")
