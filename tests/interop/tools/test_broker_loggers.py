"""kafka-configs tells and changes the levels of a broker's loggers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import against_apache

if TYPE_CHECKING:
    from tests.support.tools import Tools

pytestmark = pytest.mark.skipif(against_apache(), reason="its loggers have other names")


def test_level_of_a_logger_is_told_set_refused_and_deleted(tools: Tools, bootstrap: str) -> None:
    loggers = ("--bootstrap-server", bootstrap, "--entity-type", "broker-loggers")
    own = (*loggers, "--entity-name", "0")
    name = "broker.handlers.topics.create_topics"

    def told() -> str:
        lines = tools.check("configs", "--describe", *own).lines
        return next(line.split("=")[1].split()[0] for line in lines if f" {name}=" in f" {line}")

    assert told() == "INFO"
    tools.check("configs", "--alter", *own, "--add-config", f"{name}=DEBUG")
    assert told() == "DEBUG"
    refused = tools.run("configs", "--alter", *own, "--add-config", f"{name}=LOUD")
    assert "is not a supported log level" in refused.output + refused.errors
    tools.check("configs", "--alter", *own, "--delete-config", name)
    assert told() == "INFO"
