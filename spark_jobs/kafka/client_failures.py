"""What an error of librdkafka means to a person: one line that blames the right thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

HINTS = {
    KafkaError._INVALID_ARG: (  # noqa: SLF001 - that is the name of librdkafka's own errors
        "--client has a setting that librdkafka does not take"
    ),
}
"""What to tell a person, by errors that trying again does not mend."""

NO_ANSWER = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})  # noqa: SLF001 - as above


def client_failure(servers: str, error: KafkaException, then: str = "") -> JobError:
    """Return what a job ends with; `then` says what to do, where that depends on the job."""
    reason = error.args[0]
    words = str(reason.str()).partition("\n")[0]
    hint = HINTS.get(reason.code())
    if hint is not None:
        return JobError(f"{words}: {hint}")
    if reason.code() in NO_ANSWER:
        words = f"something listens there but does not answer as a Kafka broker ({words})"
    return JobError(f"{servers}: {words}{then}")
