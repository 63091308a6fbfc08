"""BROKER_LOGGER resources: the levels of our own loggers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.brokers.config_resources import BROKER_LOGGER
from protocol.errors import ErrorCode
from tests.broker.handlers.brokers.test_configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    code,
    description,
    increments,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "tests.loggers.one"
PACKAGE = "tests.loggers"
Change = tuple[str, int, str | None]


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """A logger in a package that has none of its own, and the levels as they were."""
    logging.getLogger(NAME)
    level = logging.root.level
    logging.root.setLevel(logging.WARNING)
    yield
    logging.root.setLevel(level)
    for name in (NAME, PACKAGE):
        logging.getLogger(name).setLevel(logging.NOTSET)


async def levels(broker: OneBroker, *names: str) -> dict[str, str]:
    answer: Any = await broker.ask(description(BROKER_LOGGER, "0", *names), 4)
    return {config.name: config.value for config in answer.results[0].configs}


async def change(broker: OneBroker, *changes: Change, name: str = "0", dry: bool = False) -> Any:
    return await broker.ask(increments(name, *changes, kind=BROKER_LOGGER, dry=dry), 1)


def test_logger_levels_are_described_set_inherited_and_deleted(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await levels(broker, "root", NAME, "no.such") == {"root": "WARN", NAME: "WARN"}
        every = await levels(broker)
        assert {"root", NAME, PACKAGE, "broker.handlers.brokers.broker_loggers"} <= set(every)

        assert code(await change(broker, (PACKAGE, SET, "TRACE"), (NAME, SET, "FATAL"))) == 0
        assert await levels(broker, PACKAGE, NAME) == {PACKAGE: "TRACE", NAME: "FATAL"}
        assert not logging.getLogger(NAME).isEnabledFor(logging.ERROR)
        assert code(await change(broker, (NAME, DELETE, None))) == 0
        assert await levels(broker, NAME) == {NAME: "TRACE"}
        assert logging.getLogger(NAME).isEnabledFor(logging.DEBUG)
        await change(broker, ("root", SET, "ERROR"))
        assert logging.root.level == logging.ERROR

    run_broker(tmp_path, scenario)


def test_a_described_logger_shows_the_source_of_its_level(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        answer: Any = await broker.ask(description(BROKER_LOGGER, "0", NAME), 4)
        (config,) = answer.results[0].configs
        assert (config.config_source, config.read_only, config.is_sensitive) == (6, False, False)

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ((NAME, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ((NAME, SET, "debug"), ErrorCode.INVALID_CONFIG),
        (("no.such", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (("no.such", DELETE, None), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ((NAME, SET, None), ErrorCode.INVALID_REQUEST),
        ((NAME, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ((NAME, SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST),
        ((NAME, 9, "INFO"), ErrorCode.INVALID_REQUEST),
        ((PACKAGE, SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_one_invalid_change_refuses_all_changes(
    tmp_path: Path, wanted: Change, error: ErrorCode
) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert code(await change(broker, (PACKAGE, SET, "DEBUG"), wanted)) == error
        assert await levels(broker, PACKAGE) == {PACKAGE: "WARN"}
        assert "no.such" not in logging.root.manager.loggerDict

    run_broker(tmp_path, scenario)


def test_validate_only_changes_no_logger(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert code(await change(broker, (NAME, SET, "DEBUG"), dry=True)) == 0
        assert await levels(broker, NAME) == {NAME: "WARN"}

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("name", ["", "1", "zero"])
def test_loggers_of_another_broker_are_refused(tmp_path: Path, name: str) -> None:
    async def scenario(broker: OneBroker) -> None:
        refused = ErrorCode.INVALID_REQUEST
        assert code(await broker.ask(description(BROKER_LOGGER, name), 4)) == refused
        assert code(await change(broker, (NAME, SET, "INFO"), name=name)) == refused

    run_broker(tmp_path, scenario)
