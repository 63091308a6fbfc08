"""Legal topic names, and names that collide. Pure."""

from __future__ import annotations

import re

from protocol.errors import ApiError, ErrorCode

MAX_LENGTH = 249
"""A partition's directory is named topic, dash, number; with suffixes it must fit 255 bytes."""

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def name_problem(topic: str) -> str | None:
    """The reason why a name is illegal, in words; None for a legal one."""
    if not topic:
        return "A topic name cannot be empty."
    if topic in {".", ".."}:
        return f"A topic cannot be named '{topic}'."
    if len(topic) > MAX_LENGTH:
        return f"A topic name cannot be longer than {MAX_LENGTH} characters: '{topic}'."
    if not _LEGAL.match(topic):
        return (
            f"Topic name '{topic}' is illegal: it may contain only letters and digits of ASCII, "
            "'.', '_' and '-'."
        )
    return None


def check_name(topic: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION if the name is not legal."""
    problem = name_problem(topic)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def collision_key(topic: str) -> str:
    """Names with equal keys collide: metric names do not distinguish '.' and '_'."""
    return topic.replace(".", "_")
