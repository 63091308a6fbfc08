"""Options from the command line, and the one line that a mistake gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError
from spark_jobs.jobs.produce_flights import ProduceOptions
from spark_jobs.jobs.produce_flights import main as produce_main
from spark_jobs.jobs.route import RouteOptions
from spark_jobs.options import Duration, Options, parse_options, server_address
from spark_jobs.pipeline.pipeline_options import PipelineOptions


def test_flags_are_typed() -> None:
    argv = ["--shuffle-partitions", "4", "--once", "--checkpoint", "x/y", "--topic", "t"]
    options = parse_options(RouteOptions, argv, "job", "A job.")
    assert options.shuffle_partitions == 4
    assert options.once
    assert options.checkpoint == Path("x/y")
    assert options.targets()["rejected"] == "t.rejected"


def test_client_settings_may_be_repeated_and_prefixed() -> None:
    argv = ["--kafka", "security.protocol=SSL", "--kafka", "kafka.ssl.truststore.location=a=b"]
    options = parse_options(RouteOptions, argv, "job", "A job.")
    assert options.kafka == {"security.protocol": "SSL", "ssl.truststore.location": "a=b"}


def test_several_values_and_switching_off() -> None:
    assert parse_options(ProduceOptions, ["--months", "1", "12"], "j", "J.").months == (1, 12)
    argv = ["--fresh", "--no-fresh"]
    assert not parse_options(PipelineOptions, argv, "j", "J.").fresh


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--partitions", "0"], "--partitions: Input should be greater than 0, got '0'"),
        (["--partitions", "x"], "--partitions: Input should be a valid integer"),
        (["--bootstrap-servers", "localhost"], "--bootstrap-servers: expected HOST:PORT, or"),
        (["--bootstrap-servers", "::1:9092"], "--bootstrap-servers: expected HOST:PORT, or"),
        (["--bootstrap-servers", "a:1,b:99999"], "--bootstrap-servers: expected HOST:PORT, or"),
        (["--topic", "a b"], "--topic: expected letters, digits, '.', '_' and '-'"),
        (["--kafka", "acks"], "--kafka: expected KEY=VALUE, got 'acks'"),
        (["--no-such"], "unrecognized arguments: --no-such (see --help)"),
        (
            ["--partition", "2"],
            "unrecognized arguments: --partition 2, did you mean '--partitions'",
        ),
        (["--log-level", "LOUD"], "--log-level: Input should be"),
    ],
)
def test_a_bad_option_is_named_in_one_line(argv: list[str], message: str) -> None:
    with pytest.raises(BadOptionError) as raised:
        parse_options(RouteOptions, argv, "job", "A job.")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


class WindowOptions(Options):
    window: Duration = "1 hour"


@pytest.mark.parametrize("window", ["soon", "0 hours", "1 fortnight", "1hour"])
def test_a_bad_duration_is_told_in_words(window: str) -> None:
    with pytest.raises(BadOptionError) as raised:
        parse_options(WindowOptions, ["--window", window], "job", "A job.")
    assert str(raised.value) == (
        "--window: expected a number of seconds, minutes, hours or days, as '1 hour', "
        f"got '{window}'"
    )


@pytest.mark.parametrize(
    ("servers", "address"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("[::1]:9092", ("::1", 9092)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
    ],
)
def test_servers_are_hosts_or_addresses_of_either_kind(
    servers: str, address: tuple[str, int]
) -> None:
    options = parse_options(RouteOptions, ["--bootstrap-servers", servers], "job", "A job.")
    assert options.bootstrap_servers == servers
    assert server_address(servers) == address


def test_a_picture_must_have_a_format() -> None:
    with pytest.raises(BadOptionError, match=r"^--picture: expected a name that ends in one of"):
        parse_options(PipelineOptions, ["--picture", "delays.docx"], "job", "A job.")


def test_a_bad_option_ends_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert produce_main(["--months", "13"]) == EXIT_BAD_OPTION
    assert capsys.readouterr().err.startswith("error: --months: ")


def test_each_broker_has_a_checkpoint_of_its_own() -> None:
    own = PipelineOptions().running_at("127.0.0.1:1")
    other = PipelineOptions(bootstrap_servers="kafka:9092").running_at("kafka:9092")
    assert own.of_job(RouteOptions, "route").checkpoint == Path("data/pipeline/own/checkpoint")
    assert other.of_job(RouteOptions, "route").checkpoint == Path(
        "data/pipeline/kafka-9092/checkpoint"
    )
    assert PipelineOptions(bootstrap_servers="[::1]:9092").place().name == "---1--9092"
