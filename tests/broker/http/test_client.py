"""Errors of the command lines on wrong usage, and on users without access to look-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.delivery.__main__ import main as delivery
from broker.http.client import PASSWORD_VARIABLE, Asked, FailedError, ask
from broker.http.endpoint import HttpEndpoint
from broker.http.protection import guard_of_lookups, protection_of
from broker.key_index.__main__ import main as key_index
from tests.broker.security.tls.tls_keys import config_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SECURED = {"key.index.user": "anna", "key.index.password": "sesame"}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Serve an endpoint that admits only anna."""
    config = config_of(SECURED)
    served = HttpEndpoint(
        "lookups", "127.0.0.1", 0, protection_of(config, guard_of_lookups(config))
    )
    served.serve(lambda *_: [])
    yield served.url
    served.close()


def refusal(endpoint: str, user: str | None) -> str:
    with pytest.raises(FailedError) as error:
        ask(Asked(endpoint, user, None), "/records", {})
    return str(error.value).removeprefix(f"{endpoint}: ")


def test_a_wrong_password_is_reported_with_status_401(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "guessed")
    assert refusal(endpoint, "anna").startswith("401 wrong user or password: key.index.user alone")


def test_a_missing_user_is_reported_with_status_401(endpoint: str) -> None:
    said = refusal(endpoint, None)
    assert said.startswith("401 user and password are missing: key.index.user alone may")
    assert said.endswith("; name the user with --user")


def test_an_unset_password_variable_is_reported(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    assert refusal(endpoint, "anna") == "KEY_INDEX_PASSWORD is not set: the password of --user anna"


@pytest.mark.parametrize("limit", ["0", "-3", "many", ""])
@pytest.mark.parametrize(("main", "words"), [(key_index, ("--key", "4711")), (delivery, ("list",))])
def test_a_limit_below_one_is_a_usage_error(
    main: Callable[[Sequence[str]], int],
    words: Sequence[str],
    limit: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--topic", "orders", f"--limit={limit}"])
    assert ended.value.code == 2
    assert f"--limit: expected a number from 1 on, got '{limit}'" in capsys.readouterr().err
