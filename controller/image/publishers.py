"""Subscribers of the image, and the order in which they hear of a change."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from controller.image.delta import MetadataDelta
from controller.image.metadata_image import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.image.metadata_image import MetadataImage

logger = logging.getLogger(__name__)


class Publisher(Protocol):
    """A subscriber of the image (`MetadataPublisher`)."""

    @property
    def name(self) -> str:
        """Name for log lines."""

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over a change. `delta.image` is the image before; `image` the one after."""


class Publishers:
    """Publishers in a fixed order, each of which fails alone.

    Its first delta leads each publisher from the empty image to the one of that moment.
    """

    __slots__ = ("_publishers", "fault_count")

    def __init__(self) -> None:
        self._publishers: list[Publisher] = []
        self.fault_count = 0
        """Errors that publishers raised; `metadata-apply-error-count`."""

    def install_in_steps(
        self, publishers: Sequence[Publisher], image: MetadataImage
    ) -> Iterator[None]:
        """Append publishers, which get the whole image at once; the delta is made in steps."""
        delta = MetadataDelta(EMPTY, is_snapshot=True)
        yield from delta.set_all_in_steps(image)
        for publisher in publishers:
            self._publish(publisher, delta, image)
        self._publishers += publishers

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Hand a change to each, in their order."""
        for publisher in self._publishers:
            self._publish(publisher, delta, image)

    def _publish(self, publisher: Publisher, delta: MetadataDelta, image: MetadataImage) -> None:
        try:
            publisher.publish(delta, image)
        except Exception:
            self.fault_count += 1
            logger.exception(
                "metadata publisher %s failed at offset %d", publisher.name, image.provenance.offset
            )
