"""Asking an identity provider over HTTP: blocking, so on a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    import ssl

MAX_ANSWER_BYTES = 1 << 20
"""Fixed: a key set or a token has a few KB. Longer answers are refused."""
TIMEOUT_SECONDS = 20.0
"""Timeout for a silent provider, unless configured otherwise (jose4j's default)."""


class ProviderError(Exception):
    """The provider gave no answer, or refused. The text shows no secret."""


def ask(
    request: Request, context: ssl.SSLContext | None = None, seconds: float = TIMEOUT_SECONDS
) -> bytes:
    """The body of the answer. Raises ProviderError."""
    url = request.full_url
    try:
        with urlopen(request, timeout=seconds, context=context) as answer:  # noqa: S310 - checked
            body: bytes = answer.read(MAX_ANSWER_BYTES + 1)
    except HTTPError as error:
        with error:
            raise ProviderError(f"{url} answered {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise ProviderError(f"{url}: {error}") from None
    if len(body) > MAX_ANSWER_BYTES:
        raise ProviderError(f"{url} answered more than {MAX_ANSWER_BYTES} bytes")
    return body
