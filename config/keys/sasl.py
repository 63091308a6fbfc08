"""SASL, all mechanisms but OAUTHBEARER."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    HIGH,
    PER_BROKER,
    class_name,
    double,
    integer,
    long,
    password,
    short,
    string,
    strings,
)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class SaslKeys:
    """SASL, all mechanisms but OAUTHBEARER."""

    sasl_client_callback_handler_class: str | None = class_name()
    """Java class that supplies this broker's credentials as a client."""

    sasl_enabled_mechanisms: tuple[str, ...] = strings("GSSAPI", scope=PER_BROKER, acts=True)
    """SASL mechanisms clients may use."""

    sasl_jaas_config: str | None = password(scope=PER_BROKER, acts=True)
    """Login modules and credentials, in the syntax of JAAS."""

    sasl_kerberos_kinit_cmd: str = string("/usr/bin/kinit", scope=PER_BROKER)
    """Path of `kinit`."""

    sasl_kerberos_min_time_before_relogin: int = long(60_000, scope=PER_BROKER)
    """Shortest time between two Kerberos logins, in milliseconds."""

    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = strings(
        "DEFAULT", scope=PER_BROKER, acts=True
    )
    """Rules that map a Kerberos principal to a user name."""

    sasl_kerberos_service_name: str | None = string(None, scope=PER_BROKER)
    """Kerberos principal the broker runs as."""

    sasl_kerberos_ticket_renew_jitter: float = double(0.05, scope=PER_BROKER)
    """Random share added to the renewal time of a ticket."""

    sasl_kerberos_ticket_renew_window_factor: float = double(0.8, scope=PER_BROKER)
    """Share of a ticket's life after which it is renewed."""

    sasl_login_callback_handler_class: str | None = class_name(acts=True)
    """Java class that supplies credentials at login."""

    sasl_login_class: str | None = class_name()
    """Java class that logs in."""

    sasl_login_refresh_buffer_seconds: int = short(300, scope=PER_BROKER, acts=True)
    """Seconds before its end at which this broker's token is renewed at the latest."""

    sasl_login_refresh_min_period_seconds: int = short(60, scope=PER_BROKER, acts=True)
    """Seconds for which this broker's token is used at least before it is renewed."""

    sasl_login_refresh_window_factor: float = double(0.8, scope=PER_BROKER, acts=True)
    """Share of a credential's life after which it is renewed."""

    sasl_login_refresh_window_jitter: float = double(0.05, scope=PER_BROKER, acts=True)
    """Random share added to that time."""

    sasl_mechanism_controller_protocol: str = string("GSSAPI", importance=HIGH)
    """SASL mechanism towards Raft controllers."""

    sasl_mechanism_inter_broker_protocol: str = string("GSSAPI", scope=PER_BROKER, acts=True)
    """SASL mechanism between brokers."""

    sasl_server_callback_handler_class: str | None = class_name(acts=True)
    """Java class that checks clients' credentials."""

    sasl_server_max_receive_size: int = integer(512 << 10, acts=True)
    """Largest message of an authentication that is accepted."""
