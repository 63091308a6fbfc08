"""OAUTHBEARER as listeners are configured, and keys from files and over HTTP."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.timers import Timers
from broker.security.oauth.client_message import client_message
from broker.security.oauth.configured import HANDLER_KEY, JWT_HANDLERS, VALIDATOR_KEY
from broker.security.oauth.key_sources import KEY, KeySources
from broker.security.sasl.credentials import Credentials
from broker.security.sasl.mechanism import Authenticated, Challenge
from broker.security.sasl.mechanisms import Surroundings, terms_of
from config.broker import BrokerConfig
from config.errors import ConfigError
from tests.broker.security.oauth.provider import NOW_MS, jwk, key_set, rsa_key, token
from tests.broker.security.oauth.test_unsecured import unsigned
from tests.support.broker_parts.arrival import arrival
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from broker.security.sasl.mechanism import Exchange, Step

PREFIX = "listener.name.sasl_plaintext.oauthbearer."
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
JWT = min(JWT_HANDLERS)
FOR_ANYBODY = {
    f"sasl.oauthbearer.allow.unverified.{claim}": "true" for claim in ("audience", "issuer")
}


class Clock:
    """Clock within the validity of the provider's tokens."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return NOW_MS


async def answer(exchange: Exchange, text: str) -> Step:
    step = exchange.respond(client_message(text))
    return step if isinstance(step, Authenticated | Challenge) else await arrival(step)


def run(
    properties: dict[str, str],
    scenario: Callable[[Callable[[], Exchange]], Coroutine[Any, Any, None]],
    options: str = "",
) -> None:
    """Run with what begins exchanges on a listener with these keys."""

    async def main() -> None:
        supervised = supervision()
        with ThreadPoolExecutor(1) as executor:
            keys = KeySources(Clock(), supervised.keep, lambda count, name: executor)
            timers = Timers(asyncio.get_running_loop())
            surroundings = Surroundings(Clock(), timers, Credentials(), keys, keys.threads)
            stated = {
                f"{PREFIX}sasl.jaas.config": f"{MODULE} {options};",
                **{PREFIX + name: value for name, value in properties.items()},
            }
            config = BrokerConfig(sasl_enabled_mechanisms=("OAUTHBEARER",), stated=stated)
            terms = terms_of(config, "SASL_PLAINTEXT", surroundings)
            try:
                await scenario(terms.mechanisms["OAUTHBEARER"].exchange)
            finally:
                await end(supervised)

    asyncio.run(main())


@contextmanager
def http_server(body: bytes, status: int = 200) -> Iterator[str]:
    """Answers every request so; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_without_a_callback_handler_unsigned_tokens_are_accepted_and_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        assert await answer(begin(), unsigned(email="a@b")) == Authenticated(
            "User:a@b", b"", NOW_MS + 100_000
        )
        assert isinstance(await answer(begin(), unsigned()), Challenge)

    run({}, scenario, 'unsecuredValidatorPrincipalClaimName="email"')
    assert f"OAUTHBEARER believes tokens that nobody has signed: set {HANDLER_KEY}" in caplog.text
    assert "OAUTHBEARER token refused: the token has no user" in caplog.text


@pytest.mark.parametrize("handler", sorted(JWT_HANDLERS))
def test_tokens_are_checked_with_keys_from_a_file(handler: str, tmp_path: Path) -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        good = token(rsa_key(), aud="kafka", email="a@b")
        assert isinstance(await answer(begin(), good), Authenticated)
        for bad in (unsigned(), token(rsa_key(2)), token(rsa_key(), aud="web", email="a@b")):
            assert isinstance(await answer(begin(), bad), Challenge)

    path = tmp_path / "keys of mine.json"
    path.write_text(key_set(jwk(rsa_key(), kid="one")))
    keys = {
        HANDLER_KEY: handler,
        KEY: path.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
        "sasl.oauthbearer.sub.claim.name": "email",
    }
    run(keys, scenario)


def test_tokens_are_checked_with_keys_of_an_address() -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        assert isinstance(await answer(begin(), token(rsa_key())), Authenticated)
        assert isinstance(await answer(begin(), token(rsa_key(2))), Challenge)

    with http_server(key_set(jwk(rsa_key(), kid="one")).encode()) as url:
        run({HANDLER_KEY: JWT, KEY: url} | FOR_ANYBODY, scenario)


@pytest.mark.parametrize(
    ("body", "status"), [(b"{}", 200), (b"away", 503), (b"[" * ((1 << 20) + 1), 200)]
)
def test_a_provider_without_keys_is_logged(
    body: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        assert isinstance(await answer(begin(), token(rsa_key())), Challenge)

    with http_server(body, status) as url:
        run({HANDLER_KEY: JWT, KEY: url} | FOR_ANYBODY, scenario)
        assert f"JWKS refresh failed, {url}" in caplog.text


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({HANDLER_KEY: "com.example.Handler"}, HANDLER_KEY),
        ({HANDLER_KEY: JWT}, KEY),
        ({HANDLER_KEY: JWT, KEY: "ftp://id/keys"}, KEY),
        ({HANDLER_KEY: JWT, KEY: "file:///nowhere/keys"}, "No such file"),
        ({HANDLER_KEY: JWT, KEY: "file:///dev/null"}, "no JSON Web Key Set"),
        ({HANDLER_KEY: JWT, VALIDATOR_KEY: "com.example.Validator"}, VALIDATOR_KEY),
    ],
)
def test_invalid_oauth_keys_are_refused_at_start(keys: dict[str, str], why: str) -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        raise AssertionError("it began")

    with pytest.raises(ConfigError, match=why):
        run(FOR_ANYBODY | keys, scenario)


@pytest.mark.parametrize("claim", ["audience", "issuer"])
def test_unverified_issuer_or_audience_must_be_allowed_explicitly(claim: str) -> None:
    async def scenario(begin: Callable[[], Exchange]) -> None:
        raise AssertionError("it began")

    keys = {HANDLER_KEY: JWT, KEY: "file:///dev/null"} | FOR_ANYBODY
    del keys[f"sasl.oauthbearer.allow.unverified.{claim}"]
    with pytest.raises(ConfigError, match=f"needs sasl.oauthbearer.expected.{claim}"):
        run(keys, scenario)
