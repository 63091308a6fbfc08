"""The writes of a starting broker: the skeleton of the tree, missing ids, its registration."""

from __future__ import annotations

from typing import cast

from controller.metadata_store.store import (
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    SetData,
    StoreError,
    Znode,
)
from controller.znodes import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    PERSISTENT_PATHS,
    BrokerRegistration,
    broker_path,
    decode_cluster_id,
    encode_broker,
    encode_cluster_id,
)


async def create_skeleton(store: MetadataStore) -> None:
    """Create the top nodes that do not exist yet. Raises StoreError."""
    nodes = await store.get_many(PERSISTENT_PATHS)
    missing = [path for path, node in zip(PERSISTENT_PATHS, nodes, strict=True) if node is None]
    for outcome in await store.multi_many([[Create(path)] for path in missing]):
        if isinstance(outcome, StoreError) and not isinstance(outcome, NodeExistsError):
            raise outcome


async def obtain_cluster_id(store: MetadataStore, proposed: str) -> str:
    """Return the cluster's id; the first broker's proposal becomes it."""
    node = await store.exists(CLUSTER_ID)
    if node is None:
        try:
            await store.create(CLUSTER_ID, encode_cluster_id(proposed))
        except NodeExistsError:
            pass
        else:
            return proposed
        node = await store.get(CLUSTER_ID)
    return decode_cluster_id(node.data)


async def generate_broker_id(store: MetadataStore, reserved_max_id: int) -> int:
    """Draw the next broker id above those that users choose.

    The counter is the version of a node that has no other content, as in Kafka, so that brokers
    which start at the same moment draw different ids.
    """
    node = await store.set(BROKER_SEQUENCE, b"")
    return reserved_max_id + node.version


async def register_broker(
    store: MetadataStore,
    broker_id: int,
    registration: BrokerRegistration,
    left_behind: Znode | None = None,
) -> int:
    """Make the broker's ephemeral node; returns its broker epoch.

    Two operations in one transaction, as Kafka does it: the second returns the node with the
    transaction id that made it. A node `left_behind` by an expired session is removed before.
    Raises NodeExistsError while another session holds the id, and NoNodeError or BadVersionError if
    the node left behind has been removed or replaced.
    """
    path = broker_path(broker_id)
    removal = [] if left_behind is None else [Delete(path, left_behind.version)]
    results = await store.multi(
        [
            *removal,
            Create(path, None, ephemeral=True),
            SetData(path, encode_broker(registration), 0),
        ]
    )
    return cast("Znode", results[-1]).czxid
