"""Client of the brokers' look-up endpoints, for command lines."""

from __future__ import annotations

import argparse
import base64
import json
import os
import ssl
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:9405"
PASSWORD_VARIABLE: Final = "KEY_INDEX_PASSWORD"  # noqa: S105 - the name of a variable
TIMEOUT_SECONDS: Final = 300
LONGEST_REASON: Final = 1000


class FailedError(Exception):
    """Reason for a missing answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        """`status` is that of HTTP, if it came to that."""
        super().__init__(text)
        self.status = status


class UnavailableError(FailedError):
    """An endpoint is not reachable, or does not serve yet."""


class Asked(NamedTuple):
    """An endpoint, and the credentials for it."""

    endpoint: str
    user: str | None
    cafile: str | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options by which endpoints are reached."""
    add = parser.add_argument
    add("--endpoint", action="append", help=f"of a broker; again for each ({DEFAULT_ENDPOINT})")
    add("--user", help=f"its password is in the environment variable {PASSWORD_VARIABLE}")
    add("--cafile", help="certificates (PEM) by which an endpoint with TLS is known")


def at_least_one(text: str) -> int:
    """The type of an option that says how many records are wanted at most."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got '{text}'")
    return int(text)


def asked_from(endpoint: str, options: argparse.Namespace) -> Asked:
    """One of the endpoints, with the options that `add_options` has added."""
    return Asked(endpoint, options.user, options.cafile)


def ask(
    asked: Asked, path: str, given: Mapping[str, object], method: str = "GET"
) -> dict[str, Any]:
    """The answer, a JSON object; None values are not sent. Raises FailedError."""
    endpoint = asked.endpoint
    query = urlencode({name: value for name, value in given.items() if value is not None})
    url = f"{endpoint.rstrip('/')}{path}?{query}"
    if not url.startswith(("http://", "https://")):
        raise FailedError(f"{endpoint} does not begin with http:// or https://")
    request = Request(url, method=method)  # noqa: S310 - looked at above
    if asked.user is not None:
        request.add_header("Authorization", _authorization(asked.user))
    try:
        context = ssl.create_default_context(cafile=asked.cafile)
        with urlopen(request, timeout=TIMEOUT_SECONDS, context=context) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
    except HTTPError as error:
        reason = error.read(LONGEST_REASON).decode("utf-8", "replace").strip()
        if error.code == HTTPStatus.UNAUTHORIZED and asked.user is None:
            reason += "; name the user with --user"
        is_away = error.code == HTTPStatus.SERVICE_UNAVAILABLE
        kind = UnavailableError if is_away else FailedError
        raise kind(f"{endpoint}: {error.code} {reason}", error.code) from None
    except (OSError, HTTPException) as error:
        raise UnavailableError(f"{endpoint}: {getattr(error, 'reason', error)}") from None
    except ValueError as error:
        raise FailedError(f"{endpoint}: {error}") from None
    return found


def _authorization(user: str) -> str:
    """The header with the credentials. Raises FailedError."""
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is None:
        raise FailedError(f"{PASSWORD_VARIABLE} is not set: the password of --user {user}")
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
