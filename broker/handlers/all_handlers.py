"""Imports every handler module, so that all are in the route table."""

from __future__ import annotations

from broker.handlers import (
    alter_configs,
    api_versions,
    cluster,
    config_resources,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    fetch,
    find_coordinator,
    group_membership,
    groups,
    leader_epochs,
    list_offsets,
    log_dirs,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    producer_ids,
    topic_partitions,
)

MODULES = (
    alter_configs,
    api_versions,
    cluster,
    config_resources,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    fetch,
    find_coordinator,
    group_membership,
    groups,
    leader_epochs,
    list_offsets,
    log_dirs,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    producer_ids,
    topic_partitions,
)
"""Importing them has registered their handlers; nothing else is done with them."""
