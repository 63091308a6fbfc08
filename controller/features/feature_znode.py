"""`/feature`: the finalised level of each feature, in the bytes of Apache Kafka 3.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.znodes import FEATURE, decode_json, encode_json, malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

ENABLED = 1


def encode_levels(levels: Mapping[str, int]) -> bytes:
    """Bytes of `/feature`, version 2; a feature at level 0 is left out."""
    features = {
        name: {"max_version_level": levels[name]} for name in sorted(levels) if levels[name]
    }
    return encode_json({"features": features, "version": 2, "status": ENABLED})


def decode_levels(data: bytes | None) -> dict[str, int]:
    """The finalised levels, by feature. Raises MalformedZnodeError."""
    content = decode_json(FEATURE, data)
    try:
        if content["status"] != ENABLED:  # written by a broker older than 2.7
            return {}
        return {
            str(name): int(level["max_version_level"])
            for name, level in content["features"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise malformed(FEATURE, data) from error
