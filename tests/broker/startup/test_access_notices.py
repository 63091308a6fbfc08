"""A broker that anybody may do anything to says so when it starts."""

from __future__ import annotations

from typing import Any

import pytest

from broker.startup.access_notices import Notice, notices
from config.broker import BrokerConfig
from config.listeners.endpoints import Endpoint

ACLS = {"authorizer_class_name": "kafka.security.authorizer.AclAuthorizer"}
ANONYMOUS_SUPER = {**ACLS, "super_users": "User:root; User:ANONYMOUS"}
OPEN = {**ACLS, "allow_everyone_if_no_acl_found": True}
CERTIFICATES = {"ssl_client_auth": "required"}


def told(protocol: str, host: str, **keys: Any) -> list[Notice]:
    return notices(BrokerConfig(**keys), Endpoint("EXTERNAL", protocol, host, 9092))


@pytest.mark.parametrize(
    ("host", "is_warning"),
    [
        ("", True),
        ("0.0.0.0", True),  # it is what the warning is about
        ("::", True),
        ("10.1.2.3", True),
        ("kafka.example", True),
        ("localhost", False),
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("::1", False),
        ("::1%lo", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", True),
    ],
)
def test_open_access_beyond_this_machine_is_a_warning(host: str, is_warning: bool) -> None:
    (notice,) = told("PLAINTEXT", host)
    assert notice.text.startswith("anyone may do anything on EXTERNAL://")
    assert notice.is_warning == is_warning


@pytest.mark.parametrize(
    ("protocol", "keys", "text", "is_warning"),
    [
        ("SSL", {}, "anyone may do anything", True),
        ("SSL", CERTIFICATES, "everyone who logs in may do anything", True),
        ("SASL_SSL", {}, "everyone who logs in may do anything", True),
        ("SASL_SSL", ACLS, "everyone who logs in may do what ACLs allow them", False),
        ("PLAINTEXT", ACLS, "anyone may do what ACLs allow User:ANONYMOUS", False),
        ("PLAINTEXT", ANONYMOUS_SUPER, "anyone may do anything, as the super user", True),
        ("SASL_SSL", ANONYMOUS_SUPER, "everyone who logs in may do what ACLs allow", False),
        ("PLAINTEXT", OPEN, "anyone may do anything to what no ACL names", True),
        ("SASL_SSL", OPEN, "everyone who logs in may do anything to what no ACL names", False),
    ],
)
def test_access_notice_names_the_effective_authorisation(
    protocol: str, keys: dict[str, Any], text: str, is_warning: bool
) -> None:
    (notice,) = told(protocol, "10.1.2.3", **keys)
    assert notice.text.startswith(text)
    assert notice.is_warning == is_warning


@pytest.mark.parametrize(
    ("protocol", "host", "mechanism", "is_told"),
    [
        ("SASL_PLAINTEXT", "10.1.2.3", "PLAIN", True),
        ("SASL_PLAINTEXT", "10.1.2.3", "OAUTHBEARER", True),
        ("SASL_PLAINTEXT", "10.1.2.3", "SCRAM-SHA-256", False),
        ("SASL_PLAINTEXT", "127.0.0.1", "PLAIN", False),
        ("SASL_SSL", "10.1.2.3", "PLAIN", False),
    ],
)
def test_passwords_over_plaintext_are_warned_of(
    protocol: str, host: str, mechanism: str, is_told: bool
) -> None:
    found = told(protocol, host, **ACLS, sasl_enabled_mechanisms=(mechanism,))
    assert [notice.is_warning for notice in found] == [False] + [True] * is_told
    assert ("unencrypted" in found[-1].text) == is_told
