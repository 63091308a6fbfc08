"""Write what a secured broker needs: certificates, passwords, property files; its clients' too.

    python scripts/secure.py build/secure               for one broker
    python scripts/secure.py build/secure --brokers 3   for those of `make cluster`

The brokers listen on SASL_SSL alone, among each other too, and have an authorizer. The user `admin`
may do anything, `alice` what an ACL allows her. What is there already is kept, so that a second run
adds a broker without making clients' files worthless; `--host` names the brokers' machine.
"""

from __future__ import annotations

import argparse
import datetime as dt
import ipaddress
import secrets
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ROOT = Path(__file__).parents[1]
VALID_DAYS = 3650
PRIVATE = 0o600
ADMIN, ALICE = "admin", "alice"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER_WITH_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"

BROKER = """
# Written by scripts/secure.py. Whoever may read this file may do anything on this broker.
listeners=SASL_SSL://:{port}
advertised.listeners=SASL_SSL://{host}:{port}
security.inter.broker.protocol=SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location={directory}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem

# PLAIN knows the users of this file; those of SCRAM are made by kafka-configs.
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} required {own} {users};
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;

authorizer.class.name={authorizer}
super.users=User:{admin}
"""

JAVA_CLIENT = """bootstrap.servers={servers}
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem
sasl.mechanism=PLAIN
sasl.jaas.config={plain} required {own};
"""

LIBRDKAFKA_CLIENT = """bootstrap.servers={servers}
security.protocol=SASL_SSL
ssl.ca.location={directory}/ca.pem
sasl.mechanism=PLAIN
sasl.username={user}
sasl.password={password}
"""

SPARK_JOBS = """# python -m spark_jobs NAME --options-file this
bootstrap_servers = "{servers}"

[kafka]
"security.protocol" = "SASL_SSL"
"ssl.truststore.type" = "PEM"
"ssl.truststore.location" = "{directory}/ca.pem"
"sasl.mechanism" = "PLAIN"
"sasl.jaas.config" = '{plain} required {own};'

[client]
"security.protocol" = "SASL_SSL"
"ssl.ca.location" = "{directory}/ca.pem"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "{user}"
"sasl.password" = "{password}"
"""


SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""What the authority's key is for."""


class Issuer(NamedTuple):
    """A certificate and the key that signs for it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def main() -> None:
    """Write everything, and say what was written."""
    options = _options()
    directory: Path = options.directory.resolve()
    ports = [options.port] if options.port else []
    files = secure(directory, options.host, options.brokers, ports)
    for path in files:
        print(path)


def secure(directory: Path, host: str, brokers: int, ports: list[int]) -> list[Path]:
    """Make all files in a directory, and return them; with 0 brokers for the one of `make run`.

    Without ports the brokers have those of `config/`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    passwords = {user: _password(directory, user) for user in (ADMIN, ALICE)}
    _certificates(directory, host)
    names = [f"server-{number}" for number in range(brokers)] or ["server"]
    ports = ports or [_port(ROOT / "config" / f"{name}.properties") for name in names]
    for name, port in zip(names, ports, strict=True):
        _write_broker(directory, name, host, port, passwords)
    servers = ",".join(f"{host}:{port}" for port in ports)
    for user, password in passwords.items():
        _write_clients(directory, servers, user, password)
    return sorted(directory.iterdir())


def _write_broker(
    directory: Path, name: str, host: str, port: int, passwords: dict[str, str]
) -> None:
    base = (ROOT / "config" / f"{name}.properties").read_text()
    kept = [line for line in base.splitlines() if not line.lstrip("#").startswith(_REPLACED)]
    own = BROKER.format(
        port=port,
        host=host,
        directory=directory,
        plain=PLAIN,
        scram=SCRAM,
        admin=ADMIN,
        authorizer=AUTHORIZER_WITH_ZOOKEEPER if "zookeeper.connect=" in base else AUTHORIZER,
        own=_login(ADMIN, passwords[ADMIN]),
        users=" ".join(f'user_{user}="{password}"' for user, password in passwords.items()),
    )
    _write(directory / f"{name}.properties", "\n".join(kept) + "\n" + own)


_REPLACED = ("listeners=", "advertised.listeners=")


def _write_clients(directory: Path, servers: str, user: str, password: str) -> None:
    values = {
        "servers": servers,
        "directory": directory,
        "plain": PLAIN,
        "user": user,
        "password": password,
        "own": _login(user, password),
    }
    _write(directory / f"{user}.properties", JAVA_CLIENT.format(**values))
    _write(directory / f"{user}.librdkafka", LIBRDKAFKA_CLIENT.format(**values))
    _write(directory / f"{user}.toml", SPARK_JOBS.format(**values))


def _login(user: str, password: str) -> str:
    return f'username="{user}" password="{password}"'


def _password(directory: Path, user: str) -> str:
    """The user's password as it was drawn before, or a new one."""
    known = directory / f"{user}.librdkafka"
    if known.exists():
        return known.read_text().partition("sasl.password=")[2].strip()
    return secrets.token_urlsafe(24)


def _port(config: Path) -> int:
    lines = config.read_text().splitlines()
    return int(next(line for line in lines if line.startswith("listeners=")).rpartition(":")[2])


def _certificates(directory: Path, host: str) -> None:
    """An authority, and what it says of the brokers; neither is made twice."""
    if not (directory / "ca.pem").exists():
        authority = _issue("Kafka CA of scripts/secure.py", None, None)
        _write(directory / "ca.key", _key_pem(authority.key))
        (directory / "ca.pem").write_text(_certificate_pem(authority.certificate))
    if not (directory / "broker.pem").exists():
        broker = _issue(host, _load_authority(directory), host)
        _write(
            directory / "broker.pem", _key_pem(broker.key) + _certificate_pem(broker.certificate)
        )


def _issue(name: str, issuer: Issuer | None, host: str | None) -> Issuer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)  # noqa: TID251 - a script has no other clock
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    # Clients on Python 3.13 and later believe no certificate without these.
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    if issuer is None:
        builder = builder.add_extension(SIGNING, critical=True)
    else:
        of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = builder.add_extension(of_issuer, critical=False)
    if host is not None:
        names = [_name(each) for each in dict.fromkeys((host, "localhost", "127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Issuer(key, builder.sign(key if issuer is None else issuer.key, hashes.SHA256()))


def _load_authority(directory: Path) -> Issuer:
    key = serialization.load_pem_private_key((directory / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Issuer(key, x509.load_pem_x509_certificate((directory / "ca.pem").read_bytes()))


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    unsealed = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, unsealed).decode()


def _certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _write(path: Path, text: str) -> None:
    """Write a file that nobody else may read, from its first byte on."""
    path.touch(mode=PRIVATE)
    path.chmod(PRIVATE)
    path.write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where the files go")
    parser.add_argument("--host", default="localhost", help="the brokers' name for clients")
    parser.add_argument("--port", type=int, help="of a single broker (default 9092)")
    parser.add_argument("--brokers", type=int, default=0, help="of a cluster with ZooKeeper")
    return parser.parse_args()


if __name__ == "__main__":
    main()
