"""Each API needs the rights that Apache Kafka's needs, and refuses with its error.

The table says what a client needs. With nothing it is refused; with all it is not; and with all but
one of them it is refused again. What is refused changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.requests.api_table import ROUTES
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.broker.coordinators.transaction_broker import TransactionBroker, run_transaction_broker
from tests.support.broker_parts.allowing import allowing
from tests.support.sent_requests.about import About
from tests.support.sent_requests.makers import ALL
from tests.support.sent_requests.outcomes import errors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from broker.security.acls.acl_authorizer import AclAuthorizer

TOPIC, GROUP, TRANSACTION = "orders", "readers", "payments"

NOT_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NOT_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NOT_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
REFUSALS = {NOT_TOPIC, NOT_GROUP, NOT_CLUSTER, NOT_TRANSACTION}

Need = tuple[ResourceType, AclOperation]
NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TRANSACTION,
    ResourceType.CLUSTER: CLUSTER_NAME,
}


def topic(operation: str) -> Need:
    return ResourceType.TOPIC, AclOperation[operation]


def group(operation: str) -> Need:
    return ResourceType.GROUP, AclOperation[operation]


def transaction(operation: str) -> Need:
    return ResourceType.TRANSACTIONAL_ID, AclOperation[operation]


def cluster(operation: str) -> Need:
    return ResourceType.CLUSTER, AclOperation[operation]


class Case(NamedTuple):
    """A request, what it needs, and the errors without any of that."""

    key: ApiKey
    needs: tuple[Need, ...]
    refusal: set[ErrorCode]
    form: int = 0
    since: int = 0
    """Its first version for which this holds."""
    until: int = 99


CASES = (
    Case(ApiKey.PRODUCE, (topic("WRITE"),), {NOT_TOPIC}),
    Case(ApiKey.PRODUCE, (transaction("WRITE"), topic("WRITE")), {NOT_TRANSACTION}, form=1),
    Case(ApiKey.FETCH, (topic("READ"),), {NOT_TOPIC}),
    Case(ApiKey.FETCH, (cluster("CLUSTER_ACTION"),), {NOT_TOPIC}, form=1),
    Case(ApiKey.LIST_OFFSETS, (topic("DESCRIBE"),), {NOT_TOPIC}),
    Case(ApiKey.DELETE_RECORDS, (topic("DELETE"),), {NOT_TOPIC}),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, (topic("DESCRIBE"),), {NOT_TOPIC}),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, (cluster("CLUSTER_ACTION"),), {NOT_TOPIC}, form=1),
    Case(ApiKey.OFFSET_COMMIT, (group("READ"), topic("READ")), {NOT_GROUP}),
    Case(ApiKey.OFFSET_FETCH, (group("DESCRIBE"), topic("DESCRIBE")), {NOT_GROUP}),
    Case(ApiKey.OFFSET_DELETE, (group("DELETE"), topic("READ")), {NOT_GROUP}),
    Case(ApiKey.FIND_COORDINATOR, (group("DESCRIBE"),), {NOT_GROUP}),
    Case(ApiKey.FIND_COORDINATOR, (transaction("DESCRIBE"),), {NOT_TRANSACTION}, form=1, since=1),
    Case(ApiKey.JOIN_GROUP, (group("READ"),), {NOT_GROUP}),
    Case(ApiKey.SYNC_GROUP, (group("READ"),), {NOT_GROUP}),
    Case(ApiKey.HEARTBEAT, (group("READ"),), {NOT_GROUP}),
    Case(ApiKey.LEAVE_GROUP, (group("READ"),), {NOT_GROUP}),
    Case(ApiKey.DESCRIBE_GROUPS, (group("DESCRIBE"),), {NOT_GROUP}),
    Case(ApiKey.DELETE_GROUPS, (group("DELETE"),), {NOT_GROUP}),
    Case(ApiKey.INIT_PRODUCER_ID, (topic("WRITE"),), {NOT_CLUSTER}),
    Case(ApiKey.INIT_PRODUCER_ID, (cluster("IDEMPOTENT_WRITE"),), {NOT_CLUSTER}),
    Case(ApiKey.INIT_PRODUCER_ID, (transaction("WRITE"),), {NOT_TRANSACTION}, form=1),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (transaction("WRITE"), topic("WRITE")),
        {NOT_TRANSACTION},
        until=3,
    ),
    Case(ApiKey.ADD_PARTITIONS_TO_TXN, (cluster("CLUSTER_ACTION"),), {NOT_CLUSTER}, since=4),
    Case(ApiKey.ADD_OFFSETS_TO_TXN, (transaction("WRITE"), group("READ")), {NOT_TRANSACTION}),
    Case(ApiKey.END_TXN, (transaction("WRITE"),), {NOT_TRANSACTION}),
    Case(ApiKey.WRITE_TXN_MARKERS, (cluster("ALTER"),), {NOT_CLUSTER}),
    Case(ApiKey.WRITE_TXN_MARKERS, (cluster("CLUSTER_ACTION"),), {NOT_CLUSTER}),
    Case(
        ApiKey.TXN_OFFSET_COMMIT,
        (transaction("WRITE"), group("READ"), topic("READ")),
        {NOT_TRANSACTION},
    ),
    Case(ApiKey.DESCRIBE_PRODUCERS, (topic("READ"),), {NOT_TOPIC}),
    Case(ApiKey.DESCRIBE_TRANSACTIONS, (transaction("DESCRIBE"),), {NOT_TRANSACTION}),
    Case(ApiKey.METADATA, (topic("DESCRIBE"),), {NOT_TOPIC}),
    Case(ApiKey.METADATA, (topic("DESCRIBE"),), {NOT_TOPIC}, form=2),
    Case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (topic("DESCRIBE"),), {NOT_TOPIC}),
    Case(ApiKey.CREATE_TOPICS, (topic("CREATE"),), {NOT_TOPIC}),
    Case(ApiKey.CREATE_TOPICS, (cluster("CREATE"),), {NOT_TOPIC}, form=1),
    Case(ApiKey.DELETE_TOPICS, (topic("DELETE"),), {NOT_TOPIC}),
    Case(ApiKey.DELETE_TOPICS, (topic("DELETE"),), {NOT_TOPIC}, form=1),
    Case(ApiKey.CREATE_PARTITIONS, (topic("ALTER"),), {NOT_TOPIC}),
    Case(ApiKey.ELECT_LEADERS, (cluster("ALTER"),), {NOT_CLUSTER}),
    Case(ApiKey.UPDATE_FEATURES, (cluster("ALTER"),), {NOT_CLUSTER}),
    Case(ApiKey.ALTER_PARTITION_REASSIGNMENTS, (cluster("ALTER"),), {NOT_CLUSTER}),
    Case(ApiKey.LIST_PARTITION_REASSIGNMENTS, (cluster("DESCRIBE"),), {NOT_CLUSTER}),
    Case(
        ApiKey.DESCRIBE_CONFIGS,
        (topic("DESCRIBE_CONFIGS"), cluster("DESCRIBE_CONFIGS")),
        {NOT_TOPIC, NOT_CLUSTER},
    ),
    Case(ApiKey.ALTER_CONFIGS, (topic("ALTER_CONFIGS"),), {NOT_TOPIC}),
    Case(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (topic("ALTER_CONFIGS"), cluster("ALTER_CONFIGS")),
        {NOT_TOPIC, NOT_CLUSTER},
    ),
    Case(ApiKey.LIST_CONFIG_RESOURCES, (cluster("DESCRIBE_CONFIGS"),), {NOT_CLUSTER}),
    Case(ApiKey.DESCRIBE_LOG_DIRS, (cluster("DESCRIBE"),), {NOT_CLUSTER}, since=3),
    Case(ApiKey.ALTER_REPLICA_LOG_DIRS, (cluster("ALTER"),), {NOT_CLUSTER}),
    *(
        Case(key, (cluster("CLUSTER_ACTION"),), {NOT_CLUSTER})
        for key in (
            *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA),
            *(ApiKey.CONTROLLED_SHUTDOWN, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
        )
    ),
)

OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""APIs that need no authorisation."""
FILTERED = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_CLUSTER}
"""APIs that refuse no one but leave out what the client may not see: tested separately, below."""
OF_ONE_BROKER = {
    *(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
    *(ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE),
    *(ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER),
    *(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, ApiKey.UNREGISTER_CONTROLLER),
    *(ApiKey.UNREGISTER_BROKER, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
}
"""APIs that clusters do not serve: see `groups/test_consumer_groups.py`, `brokers/test_quorum.py`
and `brokers/test_client_metrics.py`."""
OF_SHARE_COORDINATION = {
    *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE),
    *(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE),
    *(ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
}
"""APIs that `tests/broker/handlers/groups/test_share_groups.py` and `test_share_group_state.py`
test."""
OF_SHARE_GROUPS = {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
"""APIs that `tests/broker/handlers/share_groups/test_membership.py` tests."""
OF_SECURITY = {
    *(ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
    *(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    *(ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN),
    *(ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN),
    *(ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS),
}
"""APIs that `tests/broker/handlers/security/` tests."""


def with_needs(needs: Iterable[Need]) -> AclAuthorizer:
    return allowing(*((kind, NAMES[kind], operation) for kind, operation in needs))


async def prepare(broker: TransactionBroker) -> None:
    await broker.find_coordinator(GROUP)
    await broker.find_transaction_coordinator()
    broker.services.is_in_cluster = True


async def answers(broker: TransactionBroker, case: Case, needs: Iterable[Need]) -> dict[int, Any]:
    """The answer in each version, of a client that may do this."""
    given = {}
    versions = ROUTES[int(case.key)].versions
    for version in range(max(case.since, versions.first), min(case.until, versions.last) + 1):
        broker.services.authorizer = None
        if broker.metadata.topic(TOPIC) is None:
            await broker.create_topic(TOPIC)
        about = About(
            (TOPIC,), GROUP, TRANSACTION, case.form, {TOPIC: broker.metadata.topic_id(TOPIC)}
        )
        await broker.ask(ALL[ApiKey.OFFSET_COMMIT](about, 8), 8)  # so that there is a group
        broker.services.authorizer = with_needs(needs)
        given[version] = await broker.ask(ALL[case.key](about, version), version)
    assert given
    return given


def of_case(case: Case) -> str:
    return f"{case.key.name} form {case.form}: {' '.join(need[1].name for need in case.needs)}"


def test_every_api_is_in_the_table() -> None:
    tested = {case.key for case in CASES} | OPEN | FILTERED | OF_SECURITY | OF_ONE_BROKER
    assert tested | OF_SHARE_COORDINATION | OF_SHARE_GROUPS >= {ApiKey(key) for key in ROUTES}


def test_a_client_without_any_rights_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepare(broker)
        wrong = []
        for case in CASES:
            for version, answer in (await answers(broker, case, ())).items():
                if errors(answer) != case.refusal:
                    wrong.append((of_case(case), version, errors(answer)))
            assert broker.metadata.topic(TOPIC) is not None
        assert wrong == []

    run_transaction_broker(tmp_path, scenario)


def test_a_client_with_all_needed_rights_is_served(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepare(broker)
        wrong = []
        for case in CASES:
            for version, answer in (await answers(broker, case, case.needs)).items():
                if errors(answer) & REFUSALS:
                    wrong.append((of_case(case), version, errors(answer)))
        assert wrong == []

    run_transaction_broker(tmp_path, scenario)


def test_with_all_but_one_of_its_needs_a_client_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepare(broker)
        wrong = []
        for case in CASES:
            for missing in case.needs if len(case.needs) > 1 else ():
                needs = [need for need in case.needs if need != missing]
                for version, answer in (await answers(broker, case, needs)).items():
                    if not errors(answer) & REFUSALS:
                        wrong.append((of_case(case), missing, version, errors(answer)))
        assert wrong == []

    run_transaction_broker(tmp_path, scenario)
