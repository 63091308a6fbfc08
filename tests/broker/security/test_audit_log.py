"""Content and rate limit of the audit log."""

from __future__ import annotations

import logging

import pytest

from broker.security.audit_log import LONGEST_NAME, Asked, AuditLog, logger
from config.broker import BrokerConfig
from protocol.acl_types import AclOperation, ResourceType

ASKED = Asked("User:alice", "/10.0.0.1", "Fetch")
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.seconds = 100

    def now_ms(self) -> int:
        return self.seconds * 1000


def test_denials_are_logged_as_by_apache_kafka(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger.name)
    log = AuditLog(BrokerConfig(), Clock().now_ms)
    assert not log.tells_allowed
    log.note(ASKED, READ, TOPIC, "orders", is_allowed=False)
    log.note(ASKED, READ, ResourceType.TRANSACTIONAL_ID, None, is_allowed=False)
    log.note(ASKED, READ, TOPIC, "orders", is_allowed=True)
    assert caplog.messages == [
        (
            "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 "
            "on resource = Topic:LITERAL:orders for request = Fetch"
        ),
        (
            "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 "
            "on resource = TransactionalId:UNKNOWN:NONE for request = Fetch"
        ),
    ]


@pytest.mark.parametrize(
    ("level", "key", "expected"),
    [(logging.INFO, False, 0), (logging.INFO, True, 1), (logging.DEBUG, False, 1)],
)
def test_allowed_operations_are_logged_at_debug_or_if_configured(
    caplog: pytest.LogCaptureFixture, level: int, key: bool, expected: int
) -> None:
    caplog.set_level(level, logger.name)
    log = AuditLog(BrokerConfig(audit_log_allowed=key), Clock().now_ms)
    assert log.tells_allowed == bool(expected)
    log.note(ASKED, READ, TOPIC, "orders", is_allowed=True)
    assert len(caplog.messages) == expected
    assert all("is Allowed operation = READ" in line for line in caplog.messages)


def test_lines_are_bounded_in_a_second_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger.name)
    clock = Clock()
    log = AuditLog(BrokerConfig(audit_log_max_lines_per_second=3), clock.now_ms)
    for _ in range(100):
        log.note(ASKED, READ, TOPIC, "orders", is_allowed=False)
    assert len(caplog.messages) == 4
    assert "counted only" in caplog.messages[-1]
    clock.seconds += 1
    log.note(ASKED, READ, TOPIC, "orders", is_allowed=False)
    assert caplog.messages[4] == "audit log: Denied: 97 lines left out"
    assert "Denied" in caplog.messages[5]


def test_names_break_no_line_and_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger.name)
    log = AuditLog(BrokerConfig(), Clock().now_ms)
    hostile = Asked("User:eve\nPrincipal = User:root is Allowed", "/10.0.0.1", "Fetch")
    log.note(hostile, READ, ResourceType.GROUP, "g\r\x1b[2J" + "x" * 30_000, is_allowed=False)
    line = caplog.messages[0]
    assert line.isprintable()
    assert "eve\\nPrincipal" in line
    assert len(line) < 2 * LONGEST_NAME


def test_allowed_operations_do_not_use_up_the_line_limit_of_denials(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger.name)
    log = AuditLog(BrokerConfig(audit_log_max_lines_per_second=3), Clock().now_ms)
    for _ in range(100):
        log.note(ASKED, READ, TOPIC, "orders", is_allowed=True)
    log.note(ASKED, READ, TOPIC, "orders", is_allowed=False)
    assert "is Denied" in caplog.messages[-1]
