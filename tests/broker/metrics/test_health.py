"""Partitions that prevent the restart of a broker."""

from __future__ import annotations

from broker.metadata.metadata_cache import MetadataCache
from broker.metrics.health import out_of_sync
from protocol.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest
from protocol.uuids import ZERO_UUID


def cache_of(*states: tuple[int, list[int], list[int]]) -> MetadataCache:
    """Metadata of one topic; given are leader, in-sync replicas and replicas."""
    cache = MetadataCache()
    topic = UpdateMetadataRequest.TopicState(
        topic_name="orders",
        topic_id=ZERO_UUID,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=0,
                leader=leader,
                leader_epoch=0,
                isr=in_sync,
                zk_version=0,
                replicas=replicas,
            )
            for index, (leader, in_sync, replicas) in enumerate(states)
        ],
    )
    cache.update(
        UpdateMetadataRequest(
            controller_id=0, controller_epoch=0, topic_states=[topic], live_brokers=[]
        )
    )
    return cache


def test_partitions_with_all_replicas_in_sync_do_not_count() -> None:
    assert out_of_sync(cache_of((0, [0, 1], [0, 1]), (1, [1, 0], [1, 0])), 0) == 0
    assert out_of_sync(MetadataCache(), 0) == 0


def test_under_replicated_partitions_count_for_leaders_and_followers() -> None:
    cache = cache_of((1, [1], [0, 1]), (0, [0], [0, 2]), (1, [1, 2], [1, 2]), (2, [2], [1, 2]))
    assert out_of_sync(cache, 0) == 2
    assert out_of_sync(cache, 1) == 2
    assert out_of_sync(cache, 3) == 0


def test_a_partition_without_a_leader_counts_though_all_it_has_are_in_sync() -> None:
    assert out_of_sync(cache_of((-1, [0], [0])), 0) == 1
