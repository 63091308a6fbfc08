"""What belongs to one term of a controller, and is thrown away with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.context import ControllerContext
from controller.control_requests import ControlRequestBatch
from controller.deletion import TopicDeletion
from controller.election import FencedStore
from controller.in_sync_changes import InSyncChanges
from controller.partitions import PartitionMachine
from controller.replicas import ReplicaMachine

if TYPE_CHECKING:
    from controller.context import Term
    from controller.store import MetadataStore


class Office:
    """The context of a term, and the machines that share it."""

    def __init__(self, store: MetadataStore, broker_id: int, term: Term) -> None:
        """Begin with nothing known; the controller loads the context."""
        self.context = ControllerContext(broker_id, term)
        self.store = FencedStore(store, term)
        self.batch = ControlRequestBatch(self.context)
        self.partitions = PartitionMachine(self.context, self.store, self.batch)
        self.replicas = ReplicaMachine(self.context, self.batch)
        self.in_sync = InSyncChanges(self.context, self.store, self.batch)
        self.deletion = TopicDeletion(
            self.context, (store, self.store), self.batch, (self.partitions, self.replicas)
        )
