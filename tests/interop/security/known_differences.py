"""Known differences from Apache Kafka's answers where access is the same (GAPS.md).

3.9 differs from 4, which we follow, in a few more answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.interop.security.duel import REFUSALS
from tests.support.sent_requests.broker_requests import AMONG_BROKERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interop.security.duel import Difference

FIRST_SERVED_PRODUCE = 3
FIRST_OFFSET_FETCH_WITH_ERROR = 2
SOME_ERROR = ErrorCode.UNKNOWN_SERVER_ERROR
OF_GROUP_CONFIGS = 1 << 10 | 1 << 11


def is_of_4_3(difference: Difference) -> bool:
    """Return whether Apache Kafka 4 and ours differ for a known reason."""
    return difference.step.key is ApiKey.METADATA and _is_being_created(difference)


def is_of_3_9(difference: Difference) -> bool:
    """Return whether Apache Kafka 3.9 and ours differ for a known reason."""
    explains = _EXPLAINED.get(difference.step.key)
    return explains is not None and explains(difference)


def _is_being_created(difference: Difference) -> bool:
    """A topic that the look-up creates: LEADER_NOT_AVAILABLE here, and not there yet elsewhere."""
    return _with_unknown_topics(difference.ours) == _with_unknown_topics(difference.theirs)


def _with_unknown_topics(shown: Any) -> dict[str, Any]:
    topics = [dict(topic) for topic in shown.get("topics", ())]
    for topic in topics:
        if topic["error_code"] == ErrorCode.LEADER_NOT_AVAILABLE and "partitions" not in topic:
            topic["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {**shown, "topics": sorted(topics, key=repr)}


def _is_old_produce(difference: Difference) -> bool:
    """Versions 0 to 2 are listed for librdkafka's sake, and not served."""
    return difference.step.version < FIRST_SERVED_PRODUCE


def _is_old_offset_fetch(difference: Difference) -> bool:
    """Version 0 reads from ZooKeeper; version 1 has no field for a group's error."""
    return difference.step.version < FIRST_OFFSET_FETCH_WITH_ERROR


def _is_of_group_configs(difference: Difference) -> bool:
    """The operations on a group's configuration are newer."""
    return _without_group_configs(difference.ours) == _without_group_configs(difference.theirs)


def _without_group_configs(shown: Any) -> list[dict[str, Any]]:
    groups = [dict(group) for group in shown.get("groups", ())]
    for group in groups:
        if group.get("authorized_operations", -1) >= 0:
            group["authorized_operations"] &= ~OF_GROUP_CONFIGS
    return groups


def _is_config_error_of_refused(difference: Difference) -> bool:
    """A topic that is not created has a second error, and one that could be has no id yet."""
    return _without_config_errors(difference.ours) == _without_config_errors(difference.theirs)


def _without_config_errors(shown: Any) -> list[dict[str, Any]]:
    topics = [dict(topic) for topic in shown.get("topics", ())]
    for topic in topics:
        topic.pop("topic_id", None)
        if topic["error_code"]:
            topic.pop("topic_config_error_code", None)
    return topics


def _is_another_error(difference: Difference) -> bool:
    """Return whether the user has access with both, and only an error differs."""
    ours, theirs = map(_with_one_other_error, (difference.ours, difference.theirs))
    return bool(ours == theirs)


def _is_allowed_by_both(difference: Difference) -> bool:
    """3.9 with ZooKeeper finalises no features, and refuses all of them for what they are."""
    return not any(_refusals(shown) for shown in (difference.ours, difference.theirs))


def _refusals(shown: Any) -> list[Any]:
    """Errors of access."""
    if isinstance(shown, list):
        return [error for each in shown for error in _refusals(each)]
    if not isinstance(shown, dict):
        return []
    own = [value for name, value in shown.items() if name.endswith("error_code")]
    within = [error for value in shown.values() for error in _refusals(value)]
    return [error for error in own if error in REFUSALS] + within


def _with_one_other_error(shown: Any) -> Any:
    """Replace all errors that are not authorisation errors by one."""
    if isinstance(shown, list):
        return sorted(map(_with_one_other_error, shown), key=repr)
    if not isinstance(shown, dict):
        return shown
    return {
        name: SOME_ERROR
        if name.endswith("error_code") and value and value not in REFUSALS
        else _with_one_other_error(value)
        for name, value in shown.items()
    }


_EXPLAINED: dict[ApiKey, Callable[[Difference], bool]] = {
    ApiKey.METADATA: _is_being_created,
    ApiKey.PRODUCE: _is_old_produce,
    ApiKey.OFFSET_FETCH: _is_old_offset_fetch,
    ApiKey.DESCRIBE_GROUPS: _is_of_group_configs,
    ApiKey.CREATE_TOPICS: _is_config_error_of_refused,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _is_another_error,
    ApiKey.ALTER_CONFIGS: _is_another_error,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _is_another_error,
    ApiKey.UPDATE_FEATURES: _is_allowed_by_both,
    **dict.fromkeys(AMONG_BROKERS, _is_another_error),
}
