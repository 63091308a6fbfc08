"""Kafka's own command-line tools, run as their `main` in one JVM per version.

A tool's JVM would cost a second or two of processor each time; `ToolRunner.java` runs the same
classes with the same arguments, one after the other, and traps their exit.
"""

from __future__ import annotations

import os
import select
import subprocess
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path

from tests.support import class_archives, jars
from tests.support.processes.children import DIES_WITH_PARENT

TOOL_TIMEOUT_SECONDS = 240.0
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A tool lives for seconds: what starts fast is best."""

_COMMON = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
}
_FOUR = {
    **_COMMON,
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "storage": "kafka.tools.StorageTool",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}
CLASSES = {
    jars.KAFKA_3: {
        **_COMMON,
        "configs": "kafka.admin.ConfigCommand",
        "console-producer": "kafka.tools.ConsoleProducer",
        "acls": "kafka.admin.AclCommand",
        "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
        "dump-log": "kafka.tools.DumpLogSegments",
    },
    jars.KAFKA_4_3: {**_FOUR, "configs": "kafka.admin.ConfigCommand"},
    jars.KAFKA_4: {
        **_FOUR,
        "connect-internal-topics": "org.apache.kafka.tools.ConnectInternalTopics",
    },
}
"""Main class of each tool, by version; names are those of the shell scripts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and output of one run of a tool."""

    exit_code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """Standard output, line by line, without blank ones."""
        return [line for line in self.output.splitlines() if line.strip()]


class ToolError(RuntimeError):
    """A tool failed where success was asked for, or did not end."""


class Tools:
    """The tools of one Kafka version, in a JVM that lives until `close`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._runner: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Outcome:
        """Run `tool` and return its outcome, successful or not."""
        words = [CLASSES[self.version][tool], stdin, *arguments]
        line = " ".join("=" + b64encode(word.encode()).decode() for word in words)
        answer = self._ask(line + "\n", tool)
        code, output, errors = answer.split(" ")
        return Outcome(int(code), _text(output), _text(errors))

    def check(self, tool: str, *arguments: str, stdin: str = "") -> Outcome:
        """Run `tool` and raise `ToolError` unless it exits with 0."""
        outcome = self.run(tool, *arguments, stdin=stdin)
        if outcome.exit_code != 0:
            said = f"{outcome.output}\n{outcome.errors}"
            raise ToolError(f"{tool} {' '.join(arguments)}: exit {outcome.exit_code}\n{said}")
        return outcome

    def run_alone(self, tool: str, *arguments: str, stdin: str = "") -> Outcome:
        """Run `tool` in a JVM of its own: for those that do their work while the JVM ends."""
        flags = (*FLAGS, *class_archives.flags(self.version))
        java = [jars.java_home_tool("java"), *flags, "-cp", jars.classpath(self.version)]
        ended = subprocess.run(
            [*java, CLASSES[self.version][tool], *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_SECONDS,
            check=False,
        )
        return Outcome(ended.returncode, ended.stdout, ended.stderr)

    def close(self) -> None:
        """End the JVM."""
        if self._runner is not None:
            self._runner.kill()
            self._runner.communicate()
            self._runner = None

    def _ask(self, line: str, tool: str) -> str:
        runner = self._running()
        assert runner.stdin is not None
        assert runner.stdout is not None
        runner.stdin.write(line.encode())
        runner.stdin.flush()
        descriptor = runner.stdout.fileno()
        answer = bytearray()
        try:
            while not answer.endswith(b"\n"):
                ready, _, _ = select.select([descriptor], [], [], TOOL_TIMEOUT_SECONDS)
                chunk = os.read(descriptor, 1 << 16) if ready else b""
                if not chunk:
                    raise ToolError(f"{tool} of {self.version} gave no answer")
                answer += chunk
        except BaseException:  # a test's time-out too: the next tool would read this one's answer
            self.close()
            raise
        return answer.decode().rstrip("\n")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._runner is None:
            classes = jars.compiled(self.version, Path(__file__).with_name("ToolRunner.java"))
            classpath = f"{jars.classpath(self.version)}:{classes}"
            java = jars.java_home_tool("java")
            flags = (*FLAGS, *class_archives.flags(self.version))
            self._runner = subprocess.Popen(
                [*DIES_WITH_PARENT, java, *flags, "-cp", classpath, "ToolRunner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._runner


def _text(word: str) -> str:
    return b64decode(word[1:]).decode("utf-8", errors="replace")
