"""Markers and options that the pytest plugin refuses, and its error messages."""

from __future__ import annotations

import pytest

from tests.interop.embedded.test_plugin import run

pytest_plugins = ["pytester"]


def test_an_unknown_marker_argument_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kafka(broker=3)
        def test_it(kafka_broker):
            pass
        """
    )
    result = run(pytester)
    result.stdout.fnmatch_lines(["*::test_it: *takes config, brokers*not broker*"])
    assert result.ret != 0


@pytest.mark.parametrize(
    ("marked", "told"),
    [
        ("isolation='vm'", "isolation is one of thread, process, and not 'vm'"),
        ("storage='cloud'", "storage is one of disk, memory, and not 'cloud'"),
        ("security='tls'", "security is one of ssl, sasl_plaintext, sasl_ssl, and not 'tls'"),
        ("brokers=0", "brokers is a whole number from 1 on, and not 0"),
        ("brokers='x'", "brokers is a whole number from 1 on, and not 'x'"),
        ("config='x'", "config is a mapping, and not 'x'"),
        ("partitions='six'", "partitions is a whole number from 1 on, and not 'six'"),
        ("partitions=1.5", "partitions is a whole number from 1 on, and not 1.5"),
        ("partitions=0", "partitions is a whole number from 1 on, and not 0"),
        ("topic_config=5", "topic_config is a mapping, and not 5"),
    ],
)
def test_an_invalid_marker_value_is_refused(
    pytester: pytest.Pytester, marked: str, told: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.kafka({marked})
        def test_it(kafka_broker, kafka_cluster):
            pass
        """
    )
    result = run(pytester)
    result.stdout.fnmatch_lines([f"*::test_it: @pytest.mark.kafka: {told}*"])
    assert result.ret != 0


@pytest.mark.parametrize("options", [["--kafka-brokers", "0"], ["-o", "kafka_brokers=many"]])
def test_an_invalid_number_of_brokers_is_refused(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile("def test_it(kafka_cluster): pass")
    result = run(pytester, *options)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*kafka_brokers is a whole number from 1 on, and not *"])


def test_a_key_that_no_broker_has_is_a_warning(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kafka(config={"no.such": 0})
        def test_it(kafka_broker):
            assert kafka_broker.is_running
        """
    )
    result = run(pytester, "-W", "default")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*config: no.such is not a configuration key*"])
