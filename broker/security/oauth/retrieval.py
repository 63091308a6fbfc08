"""Sources of this broker's own tokens: a file, a provider, or unsecured ones made here.

`sasl.login.callback.handler.class` chooses, as in Apache Kafka: without it a token consists of the
options of the login module (`unsecuredLoginStringClaim_sub="broker"`), unsigned. With
`OAuthBearerLoginCallbackHandler` it comes from `sasl.oauthbearer.token.endpoint.url`: by the client
credentials grant (RFC 6749, 4.4), or read from a file each time.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, url2pathname

from broker.security.oauth.http import TIMEOUT_SECONDS, ProviderError, ask
from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.runtime.clock import Clock
    from config.broker import BrokerConfig

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
LOGIN_HANDLERS = frozenset(
    (
        f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",  # before Apache Kafka 4
    )
)
HANDLER_KEY = "sasl.login.callback.handler.class"
URL_KEY = "sasl.oauthbearer.token.endpoint.url"
LOGIN = "unsecuredLogin"
EXTENSION = "extension_"
MS_PER_SECOND = 1000


@dataclass(frozen=True, slots=True, repr=False)
class TokenSource:
    """Retrieval of a token, and the extensions sent with it."""

    retrieve: Callable[[], bytes]
    """The token. May block for long, so call it on a thread. Raises ProviderError."""
    extensions: Mapping[str, str]


def token_source(config: BrokerConfig, options: Mapping[str, str], clock: Clock) -> TokenSource:
    """The configured source; `options` are those of the login module. Raises ConfigError."""
    handler = config.sasl_login_callback_handler_class
    if handler in (None, UNSECURED_HANDLER):
        claims = _unsecured_claims(options)
        extensions = _named(options, f"{LOGIN}Extension_")
        seconds = options.get(f"{LOGIN}LifetimeSeconds", "3600")
        if not seconds.isdecimal():
            raise ConfigError(f"{LOGIN}LifetimeSeconds is no number of seconds")
        return TokenSource(partial(_unsecured, claims, int(seconds), clock), extensions)
    if handler not in LOGIN_HANDLERS:
        known = ", ".join((*sorted(LOGIN_HANDLERS), UNSECURED_HANDLER))
        raise ConfigError(f"{HANDLER_KEY} of OAUTHBEARER is none of: {known}", HANDLER_KEY)
    return TokenSource(_retrieval(config, options), _named(options, EXTENSION))


def _retrieval(config: BrokerConfig, options: Mapping[str, str]) -> Callable[[], bytes]:
    url = config.sasl_oauthbearer_token_endpoint_url or ""
    scheme = urlsplit(url).scheme.lower()
    if scheme == "file":
        return partial(_read_token, Path(url2pathname(urlsplit(url).path)))
    if scheme not in ("http", "https"):
        raise ConfigError(f"{URL_KEY} has to be a file, http or https URL", URL_KEY)
    name = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if not name or not secret:
        key = "sasl.oauthbearer.client.credentials.client.id"
        raise ConfigError(f"{key} and client.secret are missing, or clientId and clientSecret", key)
    scope = config.sasl_oauthbearer_scope or options.get("scope")
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    request = Request(  # noqa: S310 - the scheme was checked
        url,
        data=urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}",
            "Accept": "application/json",
            "Cache-Control": "no-cache",
        },
    )
    limits_ms = (config.sasl_login_read_timeout_ms, config.sasl_login_connect_timeout_ms)
    seconds = next((ms / MS_PER_SECOND for ms in limits_ms if ms), TIMEOUT_SECONDS)
    return partial(_ask_for_token, request, seconds)


def _ask_for_token(request: Request, seconds: float) -> bytes:
    body = ask(request, seconds=seconds)
    try:
        answer = json.loads(body)
        token = answer.get("access_token") or answer.get("id_token")
    except (ValueError, AttributeError, RecursionError):
        token = None
    if not isinstance(token, str) or not token.strip():
        raise ProviderError(f"{request.full_url} answered without an access token")
    return token.strip().encode()


def _read_token(path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise ProviderError(str(error)) from None
    if not token:
        raise ProviderError(f"{path} is empty")
    return token


def _unsecured(claims: Mapping[str, Any], lifetime_seconds: int, clock: Clock) -> bytes:
    now = clock.now_ms() / MS_PER_SECOND
    content = {"exp": now + lifetime_seconds, "iat": now, **claims}
    parts = ({"alg": "none"}, content)
    return b"".join(
        urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") + b"." for part in parts
    )


def _unsecured_claims(options: Mapping[str, str]) -> dict[str, Any]:
    claims: dict[str, Any] = dict(_named(options, f"{LOGIN}StringClaim_"))
    for name, text in _named(options, f"{LOGIN}NumberClaim_").items():
        try:
            claims[name] = float(text)
        except ValueError:
            raise ConfigError(f"{LOGIN}NumberClaim_{name} is no number") from None
    for name, text in _named(options, f"{LOGIN}ListClaim_").items():
        claims[name] = text[1:].split(text[0]) if len(text) > 1 else []
    reserved = claims.keys() & {"iat", "exp"}
    if reserved:
        raise ConfigError(f"the claim {reserved.pop()!r} of a login module cannot be set")
    who = options.get(f"{LOGIN}PrincipalClaimName", "").strip() or "sub"
    if not claims.get(who):
        raise ConfigError(f"{LOGIN}StringClaim_{who} is missing: who the broker is for others")
    return claims


def _named(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): text
        for name, text in options.items()
        if name.startswith(prefix) and name != prefix
    }
