"""Settings of delayed records and retries that one topic cannot have, whatever the keys accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.errors import ConfigError, invalid
from controller.topics.topic_names import INTERNAL_TOPICS, name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.key import Value


def check_delivery(topic: str, values: Mapping[str, Value]) -> None:
    """Raise ConfigError for dead letters without a valid topic, or delays of an internal topic.

    `values` are the topic's settings, as `validate_topic_config` returns them.
    """
    dead_letters = str(values.get("retry_dead_letter_topic", ""))
    problem = name_problem(dead_letters) if dead_letters else None
    if problem is not None:
        raise invalid("retry.dead.letter.topic", dead_letters, problem)
    keeps_back = values.get("delivery_delay_enable", False)
    if topic in INTERNAL_TOPICS and (keeps_back or values.get("retry_policy", "none") != "none"):
        raise ConfigError(
            f"delivery.delay.enable and retry.policy cannot be set on {topic}, "
            "which the broker reads itself"
        )
