"""BROKER_LOGGER resources: describing and changing the levels of this process's loggers (KIP-412).

Loggers have the names under which they appear in the log, which are those of Python modules and of
the packages above them; `root` is above all. A level lasts until the process ends. TRACE logs the
same as DEBUG: nothing here is logged below that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from config.alteration import Operation
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from broker.requests.services import BrokerServices
    from protocol.messages.configs import IncrementalAlterConfigsRequest

    Change = IncrementalAlterConfigsRequest.Resource.Config

logger = logging.getLogger(__name__)

ROOT: Final = "root"
LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
SOURCE: Final = 6
"""Config source: a broker's logger."""


def described(broker: BrokerServices, name: str, keys: Collection[str] | None) -> dict[str, str]:
    """Effective level of each logger, by name; `keys` are the requested ones, None for all.

    Raises ApiError INVALID_REQUEST if `name` is not this broker's.
    """
    _require_own(broker, name)
    names = _known()
    wanted = sorted(names) if keys is None else [key for key in keys if key in names]
    return {each: _name_of(_logger(each).getEffectiveLevel()) for each in wanted}


def alter(
    broker: BrokerServices, name: str, changes: Sequence[Change], *, validate_only: bool
) -> None:
    """Set and delete levels, all or none. Raises ApiError as Apache Kafka 4.3 does."""
    _check_values(changes)
    _require_own(broker, name)
    names = _known()
    for change in changes:
        _check(change, names)
    if validate_only:
        return
    for change in changes:
        level = logging.NOTSET if change.value is None else LEVELS.get(change.value, logging.NOTSET)
        if change.config_operation == Operation.DELETE:
            level = logging.NOTSET
        _logger(change.name).setLevel(level)
        logger.warning("log level of %s is %s now", change.name, _name_of(_effective(change.name)))


def _require_own(broker: BrokerServices, name: str) -> None:
    broker_id = broker.config.broker_id
    if name != str(broker_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id} but received {name}",
        )


def _check_values(changes: Sequence[Change]) -> None:
    if len({change.name for change in changes}) < len(changes):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [
        change.name
        for change in changes
        if change.value is None and change.config_operation != Operation.DELETE
    ]
    if missing:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}"
        )


def _check(change: Change, names: Iterable[str]) -> None:
    if change.config_operation not in (Operation.SET, Operation.DELETE):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Operation {change.config_operation} is not allowed for the BROKER_LOGGER resource",
        )
    if change.name not in names:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.config_operation == Operation.DELETE:
        if change.name == ROOT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
    elif change.value not in LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported "
            f"log level. Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def _known() -> set[str]:
    """Loggers, and the packages above them, which Python makes loggers of when they are needed."""
    return {ROOT, *logging.root.manager.loggerDict}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _effective(name: str) -> int:
    return _logger(name).getEffectiveLevel()


def _name_of(level: int) -> str:
    """The name of the most detailed level that is logged."""
    return next((name for name, least in LEVELS.items() if level <= least), "FATAL")
