"""Sources of this broker's own tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.security.oauth.http import ProviderError
from broker.security.oauth.retrieval import (
    HANDLER_KEY,
    LOGIN_HANDLERS,
    URL_KEY,
    TokenSource,
    token_source,
)
from broker.security.oauth.unsecured import UnsecuredValidator
from config.broker import BrokerConfig
from config.errors import ConfigError
from tests.broker.security.oauth.provider import NOW_MS
from tests.broker.security.oauth.token_endpoint import token_endpoint

if TYPE_CHECKING:
    from pathlib import Path

HANDLER = min(LOGIN_HANDLERS)


class Clock:
    """Clock that stands still."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return NOW_MS


def source(options: dict[str, str] | None = None, **keys: Any) -> TokenSource:
    return token_source(BrokerConfig(**keys), options or {}, Clock())


def test_unsecured_token_is_made_of_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "broker",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginNumberClaim_level": "2",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_cluster": "a",
    }
    made = source(options)
    found = UnsecuredValidator({}).validate(made.retrieve().decode(), NOW_MS)
    assert (found.name, found.expires_at_ms) == ("broker", NOW_MS + 60_000)
    assert found.scope == frozenset({"a", "b"})
    assert made.extensions == {"cluster": "a"}


@pytest.mark.parametrize(
    ("options", "keys", "why"),
    [
        ({}, {}, "unsecuredLoginStringClaim_sub is missing"),
        ({"unsecuredLoginStringClaim_exp": "1"}, {}, "'exp'"),
        ({"unsecuredLoginNumberClaim_x": "one"}, {}, "NumberClaim_x"),
        ({"unsecuredLoginLifetimeSeconds": "-1"}, {}, "StringClaim_sub|LifetimeSeconds"),
        ({}, {"sasl_login_callback_handler_class": "com.example.X"}, HANDLER_KEY),
        ({}, {"sasl_login_callback_handler_class": HANDLER}, URL_KEY),
    ],
)
def test_invalid_token_options_are_refused_at_start(
    options: dict[str, str], keys: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        source(options, **keys)


def test_provider_needs_a_name_and_a_secret() -> None:
    keys = {"sasl_login_callback_handler_class": HANDLER}
    with pytest.raises(ConfigError, match=r"client\.secret are missing"):
        source({"clientId": "broker"}, **keys, sasl_oauthbearer_token_endpoint_url="https://id/t")


def test_token_is_read_from_a_file_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = source(
        sasl_login_callback_handler_class=HANDLER,
        sasl_oauthbearer_token_endpoint_url=path.as_uri(),
    )
    with pytest.raises(ProviderError, match="No such file"):
        made.retrieve()
    for text in ("a.b.c", "d.e.f"):
        path.write_text(f"{text}\n")
        assert made.retrieve() == text.encode()
    path.write_text("\n")
    with pytest.raises(ProviderError, match="empty"):
        made.retrieve()


@pytest.mark.parametrize("handler", sorted(LOGIN_HANDLERS))
def test_token_is_asked_of_a_provider(handler: str) -> None:
    with token_endpoint(b'{"access_token": "a.b.c"}') as (url, asked):
        made = source(
            {"clientId": "broker", "clientSecret": "s:e c", "extension_cluster": "a"},
            sasl_login_callback_handler_class=handler,
            sasl_oauthbearer_token_endpoint_url=url,
            sasl_oauthbearer_scope="kafka all",
        )
        assert made.retrieve() == b"a.b.c"
        assert made.extensions == {"cluster": "a"}
    (request,) = asked
    assert request.authorization == "Basic YnJva2VyOnM6ZSBj"
    assert request.body == b"grant_type=client_credentials&scope=kafka+all"


@pytest.mark.parametrize(
    ("answer", "status"),
    [(b"{}", 200), (b"[]", 200), (b"no", 200), (b'{"access_token": 7}', 200), (b"s3cret", 401)],
)
def test_refusal_of_a_provider_shows_no_secret(answer: bytes, status: int) -> None:
    with token_endpoint(answer, status) as (url, _):
        made = source(
            sasl_oauthbearer_client_credentials_client_id="broker",
            sasl_oauthbearer_client_credentials_client_secret="s3cret",
            sasl_login_callback_handler_class=HANDLER,
            sasl_oauthbearer_token_endpoint_url=url,
        )
        with pytest.raises(ProviderError) as caught:
            made.retrieve()
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(made)
