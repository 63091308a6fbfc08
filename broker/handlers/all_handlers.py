"""All handlers: importing this module enters them into the API table."""

from __future__ import annotations

from broker.handlers.brokers import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    cluster,
    control,
    describe_configs,
    features,
    log_dirs,
    quorum,
    telemetry,
)
from broker.handlers.groups import (
    consumer_groups,
    find_coordinator,
    listing,
    membership,
    offset_commit,
    offset_fetch,
    share_group_offsets,
    share_group_state,
    share_groups,
    streams_groups,
)
from broker.handlers.records import delete_records, fetch, leader_epochs, list_offsets, produce
from broker.handlers.security import (
    acls,
    client_quotas,
    delegation_tokens,
    sasl,
    scram_credentials,
)
from broker.handlers.share_groups import share_acknowledge, share_fetch
from broker.handlers.topics import (
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    metadata,
    reassignments,
    topic_partitions,
)
from broker.handlers.transactions import (
    describe_producers,
    describe_transactions,
    producer_ids,
    transaction,
    txn_offset_commit,
    write_txn_markers,
)

MODULES = (
    acls,
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    client_quotas,
    cluster,
    consumer_groups,
    control,
    create_partitions,
    create_topics,
    delegation_tokens,
    delete_records,
    delete_topics,
    describe_configs,
    describe_producers,
    describe_transactions,
    elect_leaders,
    features,
    fetch,
    find_coordinator,
    leader_epochs,
    list_offsets,
    listing,
    log_dirs,
    quorum,
    telemetry,
    membership,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    producer_ids,
    reassignments,
    sasl,
    scram_credentials,
    share_acknowledge,
    share_fetch,
    share_group_offsets,
    share_group_state,
    streams_groups,
    share_groups,
    topic_partitions,
    transaction,
    txn_offset_commit,
    write_txn_markers,
)
"""One for each family of requests."""
