"""Metrics over TLS, and for one user alone."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from broker.http.protection import guard_of_metrics, protection_of
from broker.metrics.endpoint import PATH, MetricsEndpoint
from config.errors import ConfigError
from tests.broker.security.tls.tls_keys import config_of
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from config.broker import BrokerConfig


@contextmanager
def endpoint(config: BrokerConfig) -> Iterator[int]:
    served = MetricsEndpoint("127.0.0.1", 0, protection_of(config, guard_of_metrics(config)))
    served.serve({PATH: lambda: b"up 1\n"})
    try:
        yield served.port
    finally:
        served.close()


def status(connection: http.client.HTTPConnection, user: str | None = None) -> int:
    shown = {} if user is None else {"Authorization": _basic(user)}
    connection.request("GET", "/metrics", headers=shown)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def _basic(user: str) -> str:
    return f"Basic {base64.b64encode(user.encode()).decode()}"


def plain(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def test_only_the_configured_user_may_read_metrics() -> None:
    config = config_of({}, metrics_user="prometheus", metrics_password="sesame")
    with endpoint(config) as port:
        assert status(plain(port)) == 401
        assert status(plain(port), "prometheus:guessed") == 401
        assert status(plain(port), "prometheus:sesame") == 200


def test_everybody_may_read_without_a_user() -> None:
    with endpoint(config_of({})) as port:
        assert status(plain(port)) == 200
        assert status(plain(port), "who:ever") == 200


def test_metrics_are_served_over_tls_beside_a_plaintext_client(tmp_path: Path) -> None:
    authority = Authority()
    keys = authority.issue("broker", tmp_path).as_keystore()
    config = config_of(keys, metrics_ssl_enable=True)
    context = ssl.create_default_context(cadata=authority.pem())
    with endpoint(config) as port:
        with socket.create_connection(("127.0.0.1", port), 60) as other:
            other.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert b"200 OK" not in other.recv(1000)
        secure = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        assert status(secure) == 200


def test_the_url_says_whether_there_is_tls(tmp_path: Path) -> None:
    keys = Authority().issue("broker", tmp_path).as_keystore()
    for config, scheme in (
        (config_of({}), "http"),
        (config_of(keys, metrics_ssl_enable=True), "https"),
    ):
        served = MetricsEndpoint("127.0.0.1", 0, protection_of(config, guard_of_metrics(config)))
        assert served.url == f"{scheme}://127.0.0.1:{served.port}"
        served.close()


def test_a_client_without_the_certificate_that_metrics_want_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    keys = authority.issue("broker", tmp_path).as_keystore()
    keys |= authority.as_truststore(tmp_path)
    stated = {"listener.name.metrics.ssl.client.auth": "required"}
    config = config_of(keys, metrics_ssl_enable=True, stated=stated)
    shown = authority.issue("prometheus", tmp_path)
    context = ssl.create_default_context(cadata=authority.pem())
    with endpoint(config) as port:
        refused = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        with pytest.raises(OSError, match=r"certificate|closed|EOF|reset|pipe"):
            status(refused)
        refused.close()
        context.load_cert_chain(shown.chain_file(), shown.key_file())
        let_in = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        assert status(let_in) == 200


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"metrics_user": "prometheus"}, r"metrics\.user and metrics\.password need each other"),
        ({"metrics_ssl_enable": True}, r"metrics\.ssl\.enable: ssl\.keystore\.location is not set"),
    ],
)
def test_invalid_protection_is_refused_at_start(more: dict[str, str], reason: str) -> None:
    config = config_of({}, **more)
    with pytest.raises(ConfigError, match=reason):
        protection_of(config, guard_of_metrics(config))
