"""Lifetime of a session until its client has to authenticate again (KIP-368)."""

from __future__ import annotations


def lifetime_ms(limit_ms: int, expires_at_ms: int | None, now_ms: int) -> int | None:
    """Milliseconds left to a session that begins now; None without a limit.

    `limit_ms` is `connections.max.reauth.ms`, none if not positive; `expires_at_ms` is when the
    credential ends, if it does. Both times are of the wall clock.
    """
    limits = [limit_ms] if limit_ms > 0 else []
    if expires_at_ms is not None:
        limits.append(max(expires_at_ms - now_ms, 0))
    return min(limits, default=None)
