"""Fixtures shared by the tests of OAUTHBEARER."""

from __future__ import annotations

import pytest

from tests.broker.security.oauth.provider import ec_key, rsa_key


@pytest.fixture(scope="session", autouse=True)
def _keys_are_made() -> None:
    """Make the keys before a test's event loop runs: drawing one may take longer than a loop may.

    They are kept, so this happens once in a process.
    """
    ec_key()
    for number in (1, 2, 3):
        rsa_key(number)
