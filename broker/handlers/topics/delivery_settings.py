"""Settings of delayed records and retries that one topic cannot have, whatever the keys accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.errors import ConfigError, invalid
from controller.topics.topic_names import INTERNAL_TOPICS, name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_LETTERS = "retry.dead.letter.topic"
OFF = {"delivery.delay.enable": "false", "retry.policy": "none"}
"""Keys that have records wait, and their values in topics where none does."""


def check_delivery(topic: str, configs: Mapping[str, str]) -> None:
    """Raise ConfigError for dead letters without a place, or an internal topic that waits."""
    dead_letters = configs.get(DEAD_LETTERS)
    if dead_letters:
        problem = name_problem(dead_letters)
        if problem is not None:
            raise invalid(DEAD_LETTERS, dead_letters, problem)
    if topic in INTERNAL_TOPICS:
        for key, off in OFF.items():
            if configs.get(key, off).strip().lower() != off:
                reason = f"{key} cannot be set on {topic}, which the broker reads itself"
                raise ConfigError(reason, key)
