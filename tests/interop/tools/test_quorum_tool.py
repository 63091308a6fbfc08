"""kafka-metadata-quorum on a broker with an embedded store, and kafka-cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.tools import Tools


def test_the_embedded_store_is_described_as_a_quorum_of_one(tools: Tools, bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)

    status = tools.check("metadata-quorum", *server, "describe", "--status").output
    replicas = tools.check("metadata-quorum", *server, "describe", "--replication").lines

    assert re.search(r"LeaderId:\s+0\b", status)
    assert re.search(r"HighWatermark:\s+[1-9]\d*", status)
    assert re.search(r"MaxFollowerLag:\s+0\b", status)
    assert re.search(r"CurrentObservers:\s+\[\]", status)
    assert len(replicas) == 2
    assert replicas[1].split()[0] == "0"
    assert replicas[1].split()[-1] == "Leader"


def test_broker_that_is_not_there_cannot_be_unregistered(tools: Tools, bootstrap: str) -> None:
    gone = tools.run("cluster", "unregister", "--bootstrap-server", bootstrap, "--id", "77")
    assert gone.exit_code == 1
    assert "BrokerIdNotRegisteredException" in gone.output + gone.errors
