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

    sasl_enabled_mechanisms: tuple[str, ...] = strings("GSSAPI", scope=PER_BROKER)

    sasl_jaas_config: str | None = password(scope=PER_BROKER)

    sasl_kerberos_kinit_cmd: str = string("/usr/bin/kinit", scope=PER_BROKER)

    sasl_kerberos_min_time_before_relogin: int = long(60_000, scope=PER_BROKER)

    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = strings("DEFAULT", scope=PER_BROKER)

    sasl_kerberos_service_name: str | None = string(None, scope=PER_BROKER)

    sasl_kerberos_ticket_renew_jitter: float = double(0.05, scope=PER_BROKER)

    sasl_kerberos_ticket_renew_window_factor: float = double(0.8, scope=PER_BROKER)

    sasl_login_callback_handler_class: str | None = class_name()

    sasl_login_class: str | None = class_name()

    sasl_login_refresh_buffer_seconds: int = short(300, scope=PER_BROKER)

    sasl_login_refresh_min_period_seconds: int = short(60, scope=PER_BROKER)

    sasl_login_refresh_window_factor: float = double(0.8, scope=PER_BROKER)

    sasl_login_refresh_window_jitter: float = double(0.05, scope=PER_BROKER)

    sasl_mechanism_controller_protocol: str = string("GSSAPI", importance=HIGH)

    sasl_mechanism_inter_broker_protocol: str = string("GSSAPI", scope=PER_BROKER)

    sasl_server_callback_handler_class: str | None = class_name()

    sasl_server_max_receive_size: int = integer(512 << 10)
