"""ZooKeeper servers that ask who is there: by SASL DIGEST-MD5, or by TLS with certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.brokers.broker_process import free_port
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.certificates import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.certificates import Authority, Issued

LOGIN_CONFIG = "-Djava.security.auth.login.config="
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def sasl_zookeeper(directory: Path, users: dict[str, str]) -> ZooKeeperServer:
    """Return a server that knows these users, by their passwords; others are anonymous to it."""
    options = {f"user_{name}": password for name, password in users.items()}
    jaas = jaas_file(directory / "zookeeper_jaas.conf", "Server", DIGEST_MODULE, options)
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    return ZooKeeperServer(directory, {"authProvider.1": provider}, (f"{LOGIN_CONFIG}{jaas}",))


def jaas_file(path: Path, section: str, module: str, options: dict[str, str]) -> Path:
    """Write a file of one section with one login module, as brokers and ZooKeeper read it."""
    words = " ".join(f'{name}="{value}"' for name, value in options.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{section} {{\n  {module} required {words};\n}};\n", encoding="utf-8")
    return path


class TlsZooKeeper(ZooKeeperServer):
    """A server that takes TLS on a port of its own, from clients with a certificate."""

    def __init__(self, directory: Path, issued: Issued, authority: Authority) -> None:
        self.secure_port = free_port()
        super().__init__(
            directory,
            {
                "secureClientPort": str(self.secure_port),
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "authProvider.x509": (
                    "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
                ),
                "ssl.clientAuth": "need",
                "ssl.keyStore.location": str(issued.pkcs12()),
                "ssl.keyStore.password": PASSWORD,
                "ssl.trustStore.location": str(authority.pkcs12(issued.directory)),
                "ssl.trustStore.password": PASSWORD,
            },
        )

    @property
    def secure_address(self) -> str:
        """Return the value of `zookeeper.connect` for TLS."""
        return f"localhost:{self.secure_port}"


def tls_keys(issued: Issued, authority: Authority) -> dict[str, str]:
    """A broker's keys for such a server, the same for both makes."""
    return {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(issued.pkcs12()),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(authority.pkcs12(issued.directory)),
        "zookeeper.ssl.truststore.password": PASSWORD,
    }
