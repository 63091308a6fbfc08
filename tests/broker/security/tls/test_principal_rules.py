"""Rules that make a principal of a name; names and rules are those of Apache Kafka's own tests."""

from __future__ import annotations

import pytest

from broker.security.tls.principal_rules import PrincipalMapping, UnmappedNameError
from config.errors import ConfigError

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, f"User:{DUKE}"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "User:Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, "User:duke"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2@$1/U", DUKE, "User:SERVICEUSERS@DUKE"),
        (
            "RULE:^CN=(.*?),OU=Others.*$/$1/,RULE:^cn=(.*?),.*$/$1/, DEFAULT",
            DUKE,
            f"User:{DUKE}",
        ),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", DUKE, "User:duke"),
        ("RULE:^CN=(.*?),.*$/$1@$4/", DUKE, "User:Duke@$4"),
        ("RULE:^CN=(.*?),.*$/$12/", DUKE, "User:Duke2"),
        (r"RULE:CN=(.*?),.*/\$1 is $1\/x/", DUKE, "User:$1 is Duke/x"),
        ("RULE:^CN=(?<who>.*?),.*$/${who}/", DUKE, "User:Duke"),
        (" , DEFAULT", DUKE, f"User:{DUKE}"),
    ],
)
def test_the_first_rule_that_matches_decides(rules: str, name: str, principal: str) -> None:
    assert PrincipalMapping(rules).principal(name) == principal


@pytest.mark.parametrize("rules", ["RULE:^CN=nobody$/x/", ""])
def test_a_name_that_no_rule_matches_is_refused(rules: str) -> None:
    with pytest.raises(UnmappedNameError, match="CN=Duke"):
        PrincipalMapping(rules).principal(DUKE)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/X",
        "RULE:(/x/",
        "RULE:^CN=.*$/$1/",
        "RULE:^CN=(.*)$/${who}/",
    ],
)
def test_an_invalid_mapping_rule_is_refused_at_start(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)
