"""Subscriptions and assignments that members of classic consumer groups exchange.

Opaque to the broker, but for OffsetDelete, which must know the subscribers of a topic.
"""

from __future__ import annotations

from protocol.fields import array, blob, int32, string
from protocol.schema import Coded, Struct


class ConsumerProtocolSubscription(Coded, versions="0-3", flexible="none"):
    """Topics that a member subscribes to, and the partitions it owns."""

    class OwnedPartition(Struct):
        """Partitions of one topic."""

        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[str] = array(string)
    user_data: bytes | None = blob(default=None, nullable="0+")
    """Data of the assignment strategy, for instance the previous assignment of a sticky member."""
    owned_partitions: list[OwnedPartition] = array(OwnedPartition, "1+", default=())
    """Partitions kept during the rebalance (KIP-429)."""
    generation_id: int = int32("2+", default=-1)
    """Generation in which it owned them; -1 if not known (KIP-792)."""
    rack_id: str | None = string("3+", default=None, nullable="0+")


class ConsumerProtocolAssignment(Coded, versions="0-3", flexible="none"):
    """Partitions assigned to a member."""

    class AssignedPartition(Struct):
        """Partitions of one topic."""

        topic: str = string()
        partitions: list[int] = array(int32)

    assigned_partitions: list[AssignedPartition] = array(AssignedPartition)
    user_data: bytes | None = blob(default=None, nullable="0+")
