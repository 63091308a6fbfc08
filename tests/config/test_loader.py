"""A property file becomes a configuration, or clear lines about why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.errors import ConfigError
from config.listeners.endpoints import read_listeners
from config.loader import load_broker_config

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def test_stated_keys_are_typed_and_the_rest_are_defaults(path: Path) -> None:
    path.write_text("broker.id=7\nlog.dirs=/one, /two\nlog.segment.bytes=1000\n")
    config, warnings = load_broker_config(path)
    assert (config.broker_id, config.log_dirs) == (7, ("/one", "/two"))
    assert config.num_partitions == 1
    assert config.topic_defaults().segment_bytes == 1000
    assert config.stated == {
        "broker.id": "7",
        "log.dirs": "/one, /two",
        "log.segment.bytes": "1000",
    }
    assert warnings == []


def test_overrides_win_over_the_file_without_a_warning(path: Path) -> None:
    path.write_text("broker.id=1\n")
    config, warnings = load_broker_config(path, ["broker.id=2", "log.dirs = /x"])
    assert (config.broker_id, config.log_dirs, warnings) == (2, ("/x",), [])


def test_log_dir_stands_in_for_log_dirs(path: Path) -> None:
    path.write_text("log.dir=/only\n")
    assert load_broker_config(path)[0].log_dirs == ("/only",)


def test_node_id_stands_in_for_broker_id(path: Path) -> None:
    path.write_text("node.id=3\n")
    assert load_broker_config(path)[0].broker_id == 3


def test_both_names_of_the_broker_id_say_the_same(path: Path) -> None:
    path.write_text("log.dirs=/x\n")
    config = load_broker_config(path)[0].identified(1001)
    assert (config.broker_id, config.node_id) == (1001, 1001)
    assert config.stated == {"log.dirs": "/x", "broker.id": "1001", "node.id": "1001"}


def test_an_unknown_key_gets_a_line_with_a_suggestion(path: Path) -> None:
    path.write_text("# mine\nlog.rol.hours=3\nfoo=1\n")
    _, warnings = load_broker_config(path)
    assert warnings == [
        f"{path}:2: log.rol.hours is not a configuration key; did you mean log.roll.hours?",
        f"{path}:3: foo is not a configuration key",
    ]


@pytest.mark.parametrize("line", ["=3", " : secret"])
def test_a_value_without_a_key_gets_a_line_that_does_not_show_it(path: Path, line: str) -> None:
    path.write_text(f"log.dirs=/x\n{line}\n")
    _, warnings = load_broker_config(path)
    assert warnings == [f"{path}:2: there is no key in front of the value, which has no effect"]


def test_a_known_key_without_effect_gets_a_line(path: Path) -> None:
    path.write_text("process.roles=broker\nlistener.name.plaintext.ssl.provider=SunJSSE\n")
    _, warnings = load_broker_config(path)
    assert warnings[0].startswith(f"{path}:1: process.roles has no effect in this broker: there is")
    assert warnings[1].startswith(f"{path}:2: listener.name.plaintext.ssl.provider has no")


def test_a_repeated_key_gets_a_line_and_the_last_one_holds(path: Path) -> None:
    path.write_text("broker.id=1\nbroker.id=2\n")
    config, warnings = load_broker_config(path)
    assert config.broker_id == 2
    assert warnings == [f"{path}:2: broker.id replaces {path}:1"]


def test_every_malformed_value_is_reported_with_its_line(path: Path) -> None:
    path.write_text("broker.id=zero\n\nnum.partitions=0\n")
    with pytest.raises(ConfigError) as refusal:
        load_broker_config(path, ["log.roll.ms=soon"])
    assert str(refusal.value).splitlines() == [
        f"{path}:1: Invalid value zero for configuration broker.id: Not a number of type INT",
        f"{path}:3: Invalid value 0 for configuration num.partitions: Value must be at least 1",
        "--override: Invalid value soon for configuration log.roll.ms: Not a number of type LONG",
    ]


def problems_of(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        load_broker_config(path, overrides)
    return str(refusal.value).splitlines()


def test_all_problems_are_reported_in_line_order(path: Path) -> None:
    path.write_text(
        "listeners=nonsense\nbroker.idd=1\nnum.partitions=0\nlog.retention.minutes=0\nbroker.id=x\n"
    )
    assert [line.partition(" ")[0] for line in problems_of(path, "log.roll.ms=soon")] == [
        *(f"{path}:{number}:" for number in range(1, 6)),
        "--override:",
    ]
    assert problems_of(path)[1] == (
        f"{path}:2: warning: broker.idd is not a configuration key; did you mean broker.id?"
    )


def test_warnings_come_in_the_order_of_their_lines(path: Path) -> None:
    path.write_text("foo=1\nbroker.id=1\nbroker.id=2\nbar=1\n")
    warnings = load_broker_config(path)[1]
    assert [warning.partition(" ")[0] for warning in warnings] == [
        f"{path}:{number}:" for number in (1, 3, 4)
    ]


def test_a_malformed_key_causes_no_errors_for_other_keys(path: Path) -> None:
    path.write_text("group.min.session.timeout.ms=x\ngroup.max.session.timeout.ms=5\n")
    [line] = problems_of(path)
    assert line.startswith(f"{path}:1: Invalid value x")


def test_an_empty_value_is_shown_as_one(path: Path) -> None:
    path.write_text("broker.id=\n")
    [line] = problems_of(path)
    assert (
        line == f"{path}:1: Invalid value '' for configuration broker.id: Not a number of type INT"
    )


@pytest.mark.parametrize("override", ["listeners=localhost:9092", "broker.id="])
def test_an_invalid_override_is_reported_as_one(path: Path, override: str) -> None:
    path.write_text("broker.id=1\n")
    [line] = problems_of(path, override)
    assert line.startswith("--override: Invalid value ")


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01", b"broker.id=1\n\x00\x00", b"k\x001\x00"])
def test_a_file_of_other_bytes_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    [line] = problems_of(path)
    assert line.startswith(f"{path}:{1 + content.count(b'broker')}: this is not a property file: ")


def test_a_byte_order_mark_is_no_part_of_the_first_key(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfbroker.id=7\n")
    config, warnings = load_broker_config(path)
    assert (config.broker_id, warnings) == (7, [])


def test_listeners_of_raft_controllers_are_left_out_with_a_line(path: Path) -> None:
    path.write_text(
        "node.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "advertised.listeners=PLAINTEXT://a:9092,CONTROLLER://a:9093\n"
        "controller.listener.names=CONTROLLER\n"
    )
    config, warnings = load_broker_config(path)
    listeners = read_listeners(config)
    assert [endpoint.name for endpoint in listeners.bound + listeners.advertised] == [
        *("PLAINTEXT", "PLAINTEXT")
    ]
    assert warnings == [
        (
            f"{path}:4: listener CONTROLLER is not opened: KRaft controllers are not supported "
            "(GAPS.md)"
        )
    ]


def test_a_file_of_a_raft_controller_alone_is_refused(path: Path) -> None:
    path.write_text(
        "process.roles=controller\nlisteners=CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\n"
    )
    assert problems_of(path)[1].startswith(
        f"{path}:2: Invalid value CONTROLLER://:9093 for configuration listeners: "
        "all of them are in controller.listener.names"
    )


def test_keys_that_do_not_fit_together_are_reported_with_a_line(path: Path) -> None:
    path.write_text("broker.id=1\ngroup.min.session.timeout.ms=9000000\n")
    with pytest.raises(
        ConfigError, match=f"^{path}:2: group.min.session.timeout.ms .9000000. must"
    ):
        load_broker_config(path)


def test_a_bad_escape_is_reported_with_its_line(path: Path) -> None:
    path.write_text("a=1\nb=\\u12\n")
    with pytest.raises(ConfigError, match=r"server.properties:2: .u12 is not an escape"):
        load_broker_config(path)


def test_a_missing_file_is_reported_by_name(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"server.properties: cannot be read: No such file"):
        load_broker_config(path)


@pytest.mark.parametrize("override", ["broker.id", "=1", ""])
def test_an_override_is_key_equals_value(path: Path, override: str) -> None:
    path.write_text("")
    with pytest.raises(ConfigError, match="expected KEY=VALUE"):
        load_broker_config(path, [override])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("broker.id=5000", "ids above reserved.broker.max.id"),
        ("broker.id=-5", "at least -1"),
        ("broker.id=-1\nbroker.id.generation.enable=false", "at least 0"),
        ("broker.id=1\nnode.id=2", "differs from broker.id"),
        ("log.retention.minutes=0", "must be unlimited"),
        ("listeners=nonsense", "NAME://host:port"),
        ("queued.max.request.bytes=1000", r"less than socket\.request\.max\.bytes"),
        ("connections.max.idle.ms=100", r"connection\.failed\.authentication\.delay\.ms"),
        ("max.connections.per.ip=0", r"max\.connections\.per\.ip\.overrides is set"),
        ("group.coordinator.rebalance.protocols=consumer", "disabling the 'classic' protocol"),
        ("group.streams.rack.aware.assignment.tags=a,b,a", "duplicate tag keys"),
        ("group.streams.num.warmup.replicas=99", r"group\.streams\.max\.warmup\.replicas"),
        ("group.streams.task.offset.interval.ms=1", r"group\.streams\.min\.task\.offset"),
        ("log.cleanup.policy=delete,", "'log.cleanup.policy' values must not be empty"),
        ("log.roll.ms=0", "log.roll.ms: Value must be at least 1"),
        *(
            (f"group.{kind}.session.timeout.ms=99999", rf"than group\.{kind}\.max\.session")
            for kind in ("consumer", "share", "streams")
        ),
        *(
            (f"group.{kind}.heartbeat.interval.ms=45000", rf"less than group\.{kind}\.session")
            for kind in ("consumer", "share", "streams")
        ),
        ("group.share.record.lock.duration.ms=1000", r"group\.share\.min\.record\.lock"),
        ("group.streams.num.standby.replicas=9", r"group\.streams\.max\.standby\.replicas"),
    ],
)
def test_apache_kafkas_checks_across_keys_hold(path: Path, line: str, complaint: str) -> None:
    path.write_text(f"{line}\n")
    with pytest.raises(ConfigError, match=complaint):
        load_broker_config(path)


@pytest.mark.parametrize(
    ("stated", "reason"),
    [("/a,/b,/a", "names /a more than once"), ("", "must name at least one directory")],
)
def test_invalid_log_dirs_are_refused(path: Path, stated: str, reason: str) -> None:
    path.write_text(f"broker.id=1\nlog.dirs={stated}\n")
    with pytest.raises(ConfigError, match=reason) as caught:
        load_broker_config(path)
    assert f"{path}:2" in str(caught.value)


@pytest.mark.parametrize("name", ["sasl.jaas.config", "listener.name.x.sasl.jaas.config"])
def test_a_login_module_of_no_listener_and_mechanism_is_warned_of(name: str, path: Path) -> None:
    own = "listener.name.x.plain.sasl.jaas.config"
    path.write_text(f"log.dirs=x\n{name}=secret;\n{own}=secret;\n")

    _, warnings = load_broker_config(path)

    told = [warning for warning in warnings if "is ignored" in warning]
    assert len(told) == 1
    assert f"{name} is ignored" in told[0]
    assert "secret" not in told[0]


def test_an_authorizer_that_is_javas_own_is_refused(path: Path) -> None:
    path.write_text("authorizer.class.name=com.example.Authorizer\n")
    (problem,) = problems_of(path)
    assert problem.startswith(f"{path}:1: Invalid value com.example.Authorizer")
    assert "org.apache.kafka.metadata.authorizer.StandardAuthorizer" in problem


@pytest.mark.parametrize("users", ["alice", "User:root;alice"])
def test_super_users_are_principals(path: Path, users: str) -> None:
    path.write_text(f"super.users={users}\n")
    (problem,) = problems_of(path)
    assert problem.endswith("but got alice")


def test_super_users_may_end_with_a_semicolon(path: Path) -> None:
    path.write_text("super.users=User:root; User:CN=broker,O=us;\n")
    assert load_broker_config(path)[1] == []
