"""Topics that a consumer's opaque join metadata names; all of it that the broker ever reads.

Layout of the head of a ConsumerProtocolSubscription: int16 version, then an int32 count of strings.
Later versions only add fields behind, so that the version itself does not matter.
"""

from __future__ import annotations

import struct

from protocol.wire import text_of

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a subscription; None when the bytes are not one."""
    try:
        version, count = struct.unpack_from(">hi", metadata)
        if version < 0 or count < 0:
            return None
        topics = set()
        position = 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, position)
            position += 2
            if length < 0 or position + length > len(metadata):
                return None
            topics.add(text_of(metadata[position : position + length]))
            position += length
    except struct.error:
        return None
    return frozenset(topics)
