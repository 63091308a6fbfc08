"""Look-ups of records by key; these keys are this broker's alone."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import DOUBLE_MAX, LOW, boolean, double, integer, password, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class KeyIndexKeys:
    """Look-ups of records by key."""

    key_index_check_interval_ms: int = integer(5_000, low=100, importance=LOW, acts=True)
    """Interval between checks for closed segments without a key index."""

    key_index_host: str = string("127.0.0.1", importance=LOW, acts=True)
    """Address at which records are looked up by key; empty is every interface."""

    key_index_io_max_bytes_per_second: float = double(DOUBLE_MAX, low=1, importance=LOW, acts=True)
    """Bytes per second that are read of logs to index them."""

    key_index_lookup_max_bytes: int = integer(
        16 << 20, low=1, high=256 << 20, importance=LOW, acts=True
    )
    """Bytes of keys, values and headers in one answer; the first record comes in any case."""

    key_index_lookup_max_records: int = integer(
        1_000, low=1, high=1_000_000, importance=LOW, acts=True
    )
    """Most records in one response, regardless of the request."""

    key_index_lookup_max_waiting: int = integer(8, low=1, high=256, importance=LOW, acts=True)
    """Look-ups that are answered or wait at the same time; more of them wait to be accepted."""

    key_index_lookup_timeout_ms: int = integer(10_000, low=100, importance=LOW, acts=True)
    """Time limit of one look-up; at the limit, the response has the records found so far."""

    key_index_password: str | None = password(importance=LOW, acts=True)
    """Password of `key.index.user`; it is sent in clear text unless `key.index.ssl.enable`."""

    key_index_port: int = integer(-1, low=-1, high=65_535, importance=LOW, acts=True)
    """Port at which records are looked up over HTTP, by key or as they wait; -1 serves none.

    0 takes any.
    """

    key_index_ssl_enable: bool = boolean(False, importance=LOW, acts=True)
    """Serve look-ups over TLS, by the `ssl.*` keys as they are at the start.

    Keys that begin with `listener.name.key-index.` take precedence."""

    key_index_user: str | None = string(None, importance=LOW, acts=True)
    """Only user allowed to look up records, by HTTP basic authentication; none allows everybody.

    With an authorizer, it needs READ on the topic; without a user, `User:ANONYMOUS` does. Waiting
    records can be cancelled by this user only."""
