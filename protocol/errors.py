"""Error codes of the Kafka protocol, and the exception that carries one to a client.

Names, numbers and retriability are those of Apache Kafka 4.3.1; the meanings are our own words,
written for readers of a client's log.
"""

from __future__ import annotations

import enum
from typing import Final, Self, TypeVar

E = TypeVar("E", bound=Exception)

RETRIABLE: Final = True


class ErrorCode(enum.IntEnum):
    """The `error_code` of a response; it is the int16 of the wire."""

    meaning: str
    """One sentence on the cause; sent when nothing more exact is known."""

    is_retriable: bool
    """True if the same request can succeed later, as the Java client judges it."""

    def __new__(cls, code: int, meaning: str = "", is_retriable: bool = False) -> Self:
        """One member: its number on the wire, its sentence, and whether to retry."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.is_retriable = is_retriable
        return member

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:  # noqa: ARG003
        """A code that only newer brokers have counts as unexpected, as in Apache Kafka."""
        return cls.UNKNOWN_SERVER_ERROR

    UNKNOWN_SERVER_ERROR = -1, "The broker hit an error it did not expect; its log has the details."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = (
        1,
        "The offset is before the start or after the end of the partition's log.",
    )
    CORRUPT_MESSAGE = (
        2,
        "The record batch is damaged: its checksum or its size does not fit its bytes.",
        RETRIABLE,
    )
    UNKNOWN_TOPIC_OR_PARTITION = 3, "This broker has no such topic or partition.", RETRIABLE
    INVALID_FETCH_SIZE = 4, "The fetch size is not a usable number of bytes."
    LEADER_NOT_AVAILABLE = (
        5,
        "The partition has no leader at present; an election may be under way.",
        RETRIABLE,
    )
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "This broker is not the leader of the partition, or holds no replica of it.",
        RETRIABLE,
    )
    REQUEST_TIMED_OUT = 7, "The request was not finished within its time limit.", RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "The replica is not available on this broker.", RETRIABLE
    MESSAGE_TOO_LARGE = 10, "The record batch is larger than the topic's max.message.bytes."
    STALE_CONTROLLER_EPOCH = 11, "The request comes from a controller that has been replaced."
    OFFSET_METADATA_TOO_LARGE = (
        12,
        "The metadata string of the committed offset is longer than offset.metadata.max.bytes.",
    )
    NETWORK_EXCEPTION = 13, "The connection was lost before an answer came.", RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = (
        14,
        "The coordinator is still loading its partition; try again shortly.",
        RETRIABLE,
    )
    COORDINATOR_NOT_AVAILABLE = (
        15,
        "There is no coordinator available for this group or transactional id.",
        RETRIABLE,
    )
    NOT_COORDINATOR = (
        16,
        "This broker does not coordinate this group or transactional id.",
        RETRIABLE,
    )
    INVALID_TOPIC_EXCEPTION = (
        17,
        "The topic name is not legal, or the topic may not be used in this way.",
    )
    RECORD_LIST_TOO_LARGE = 18, "The record batch does not fit in one segment of the topic."
    NOT_ENOUGH_REPLICAS = (
        19,
        "Too few replicas are in sync to accept a write with acks=all.",
        RETRIABLE,
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "The write is in the log, but too few replicas were in sync to acknowledge it.",
        RETRIABLE,
    )
    INVALID_REQUIRED_ACKS = 21, "acks must be 0, 1 or -1 (all)."
    ILLEGAL_GENERATION = 22, "The group has moved on to another generation."
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        "The member's protocol type or assignors do not fit those of the group.",
    )
    INVALID_GROUP_ID = 24, "The group id is empty or otherwise not usable."
    UNKNOWN_MEMBER_ID = 25, "The group has no member with this id."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside the range the broker allows."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing; the member must join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The data of the offset commit is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not authorized for this topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not authorized for this group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not authorized for this operation on the cluster."
    INVALID_TIMESTAMP = 32, "A record's timestamp is outside the range the topic accepts."
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the present state of authentication."
    UNSUPPORTED_VERSION = 35, "This version of the request is not served here."
    TOPIC_ALREADY_EXISTS = 36, "A topic with this name exists already."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = (
        38,
        "The replication factor is below 1 or above the number of live brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, "The replica assignment is not valid."
    INVALID_CONFIG = 40, "A configuration key or value is not valid."
    NOT_CONTROLLER = 41, "This broker is not the controller.", RETRIABLE
    INVALID_REQUEST = 42, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        43,
        "The record format does not support what was asked; only format 2 is accepted.",
    )
    POLICY_VIOLATION = 44, "The request is against a policy of this cluster or topic."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The producer's sequence number leaves a gap or goes back."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer's sequence number was seen before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is older than the one the broker knows."
    INVALID_TXN_STATE = 48, "The transaction is not in a state that permits this."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        "The transaction timeout is larger than transaction.max.timeout.ms.",
    )
    CONCURRENT_TRANSACTIONS = (
        51,
        "Another operation on this transaction is still running.",
        RETRIABLE,
    )
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        "The transaction marker comes from a coordinator that has been replaced.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not authorized for this transactional id."
    SECURITY_DISABLED = 54, "No authorizer is configured on this cluster."
    OPERATION_NOT_ATTEMPTED = 55, "Not attempted, because another part of the same request failed."
    KAFKA_STORAGE_ERROR = (
        56,
        "A disk error made the log directory of this partition unusable.",
        RETRIABLE,
    )
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "Authentication failed."
    UNKNOWN_PRODUCER_ID = 59, "The broker has no record of this producer id for the partition."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned already."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are not enabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, "The broker has no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal neither owns this token nor may renew it."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "Delegation tokens may not be requested over this kind of connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not authorized for this delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "This type of principal is not supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no group with this id."
    FETCH_SESSION_ID_NOT_FOUND = (
        70,
        "The broker has no fetch session with this id; it may have been evicted.",
        RETRIABLE,
    )
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session's epoch is not the next one.", RETRIABLE
    LISTENER_NOT_FOUND = (
        72,
        "The leader has no listener of the name this request came in on.",
        RETRIABLE,
    )
    TOPIC_DELETION_DISABLED = 73, "Deleting topics is switched off (delete.topic.enable)."
    FENCED_LEADER_EPOCH = (
        74,
        "The leader epoch in the request is older than the broker's.",
        RETRIABLE,
    )
    UNKNOWN_LEADER_EPOCH = (
        75,
        "The leader epoch in the request is newer than the broker's.",
        RETRIABLE,
    )
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "The compression codec cannot be used with this version of the request.",
    )
    STALE_BROKER_EPOCH = 77, "The broker epoch in the request is not the current one."
    OFFSET_NOT_AVAILABLE = (
        78,
        "The new leader does not know its high watermark yet, so no offset can be given.",
        RETRIABLE,
    )
    MEMBER_ID_REQUIRED = 79, "The member must join again with the member id in this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available.", RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "The group already has as many members as group.max.size allows."
    FENCED_INSTANCE_ID = 82, "A newer member has taken over this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (
        83,
        "No replica that may lead the partition is available.",
        RETRIABLE,
    )
    ELECTION_NOT_NEEDED = 84, "The partition is led by the right replica already.", RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = (
        86,
        "The group is subscribed to the topic, so its offsets cannot be deleted.",
    )
    INVALID_RECORD = 87, "A record, or the batch around it, is not valid."
    UNSTABLE_OFFSET_COMMIT = (
        88,
        "An open transaction holds offsets of this group that are not decided yet.",
        RETRIABLE,
    )
    THROTTLING_QUOTA_EXCEEDED = (
        89,
        "The client exceeded a quota; wait for the throttle time in the answer.",
        RETRIABLE,
    )
    PRODUCER_FENCED = 90, "A newer producer with the same transactional id has taken over."
    RESOURCE_NOT_FOUND = 91, "The request refers to something that does not exist."
    DUPLICATE_RESOURCE = 92, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential does not meet what the broker demands."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the expected voters."
    INVALID_UPDATE_VERSION = 95, "The given version of the update is not valid."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal of a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "This broker has no topic with this id.", RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "Another live broker uses this broker id."
    BROKER_ID_NOT_REGISTERED = 102, "No broker with this id is registered."
    INCONSISTENT_TOPIC_ID = (
        103,
        "The topic id in the request is not that of the broker's log.",
        RETRIABLE,
    )
    INCONSISTENT_CLUSTER_ID = 104, "The cluster id in the request is not that of this cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        "The fetch session mixes topic names and topic ids.",
        RETRIABLE,
    )
    INELIGIBLE_REPLICA = 107, "A replica of the proposed in-sync set may not be in it."
    NEW_LEADER_ELECTED = (
        108,
        "The change was made, and the partition has a new leader because of it.",
    )
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset is held in tiered storage only."
    FENCED_MEMBER_EPOCH = (
        110,
        "The member's epoch is fenced; it must give up its partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = (
        111,
        "Another member still holds this group.instance.id and must leave first.",
    )
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support this assignor or its version."
    STALE_MEMBER_EPOCH = (
        113,
        "The member's epoch is old; it must retry with the one of its next heartbeat.",
    )
    MISMATCHED_ENDPOINT_TYPE = 114, "The request was sent to the wrong kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "This kind of endpoint is not supported yet."
    UNKNOWN_CONTROLLER_ID = 116, "There is no controller with this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is unknown or out of date."
    TELEMETRY_TOO_LARGE = 118, "The pushed telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The broker's registration is not valid."
    TRANSACTION_ABORTABLE = (
        120,
        "The transaction cannot go on, but it can be aborted and the id used further.",
    )
    INVALID_RECORD_STATE = 121, "The record is not in a state in which it can be acknowledged."
    SHARE_SESSION_NOT_FOUND = 122, "The broker has no such share session.", RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session's epoch is not the next one.", RETRIABLE
    FENCED_STATE_EPOCH = 124, "The state epoch of the share group does not match."
    INVALID_VOTER_KEY = 125, "The voter's key is not the one of this replica."
    DUPLICATE_VOTER = 126, "The voter is in the set already."
    VOTER_NOT_FOUND = 127, "The voter is not in the set."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client's metadata is too old; it should bootstrap anew."
    STREAMS_INVALID_TOPOLOGY = 130, "The streams topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The epoch of the streams topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The epoch of the streams topology is older than the group's."
    SHARE_SESSION_LIMIT_REACHED = (
        133,
        "The broker holds as many share sessions as it may.",
        RETRIABLE,
    )
    GROUP_DELETION_FAILED = 134, "The group could not be deleted; its message says why."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = (
        135,
        "The description of the streams topology could not be stored; the message says why.",
    )
    CONTROLLER_ID_NOT_REGISTERED = 136, "The controller ID is not registered."


LONGEST_MESSAGE = 1000
"""Length limit of an error message, in characters: it may repeat a client's input, and a string on
the wire has 32,767 bytes at most."""


def shortened(text: str) -> str:
    """Return `text`, cut to the length limit of error messages."""
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


def detached(error: E) -> E:
    """Return `error` without its frames, cause and context, so that it can be kept.

    Frames hold the request and its connection. One that holds the error in turn, as a value of its
    own, is a garbage cycle with all of that.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class ApiError(Exception):
    """A request, or one part of it, failed with `code`; dispatch or the handler answers with it.

    `message` names the fault in the request, and may be shown to the client; it is cut at
    LONGEST_MESSAGE.
    """

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        self.code = code
        self.message = shortened(message) or code.meaning
        super().__init__(code, self.message)

    def __str__(self) -> str:
        return f"{self.code.name} ({int(self.code)}): {self.message}"
