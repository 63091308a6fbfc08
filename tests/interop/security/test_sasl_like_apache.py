"""An authentication in any order is answered as by Apache Kafka 4: drawn dialogues with both.

Long runs: `SASL_DIALOGUES=20000 SASL_SEED=7`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ssl import create_default_context
from typing import TYPE_CHECKING

import pytest

from tests.interop.security.sasl_dialogues import AMONG_TOKENS, BY_NAME, CLOSED, drawn, held
from tests.support.security.listeners import PROTOCOLS
from tests.support.security.secured_brokers import APACHE_4, OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from ssl import SSLContext

    from tests.interop.security.sasl_dialogues import Frame
    from tests.support.security.listeners import Ports as OfOne
    from tests.support.security.realm import Realm

    Ports = tuple[OfOne, OfOne]
    Dialogues = list[tuple[Frame, ...]]

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

COUNT = int(os.environ.get("SASL_DIALOGUES", "1000"))
SEED = int(os.environ.get("SASL_SEED", "1"))
AT_ONCE = 8
LIFETIME = "3600000"
KEYS = {
    "connection.failed.authentication.delay.ms": "0",
    "connections.max.reauth.ms": LIFETIME,
}


@pytest.fixture(scope="module")
def brokers(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """The ports of one broker of each make."""
    directory = tmp_path_factory.mktemp("dialogues")
    ours = secured_broker(OURS, directory / "ours", realm, KEYS)
    theirs = secured_broker(APACHE_4, directory / "theirs", realm, KEYS)
    try:
        ours.start()
        theirs.start()
        yield ours.ports, theirs.ports
    finally:
        ours.process.kill()
        theirs.process.kill()


def _compared(
    dialogues: Dialogues, ports: Iterable[int], tls: SSLContext | None = None
) -> list[list[str]]:
    """Return the outcome of each dialogue; fail unless both brokers agree."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = [list(pool.map(partial(held, port, tls=tls), dialogues)) for port in ports]
    different = [
        f"{[frame.name for frame in frames]}\n  ours:   {mine}\n  theirs: {their}"
        for frames, mine, their in zip(dialogues, *ends, strict=True)
        if mine != their
    ]
    if different:
        pytest.fail("\n".join(different), pytrace=False)
    return ends[0]


@pytest.mark.timeout(1200)
def test_every_dialogue_goes_as_with_apache(brokers: Ports) -> None:
    dialogues = [(frame,) for frame in BY_NAME.values()] + drawn(SEED, COUNT)

    ends = _compared(dialogues, (ports.sasl_plaintext for ports in brokers))

    admitted = sum(any(LIFETIME in told for told in end) for end in ends)
    assert admitted > COUNT // 10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_other_requests_among_tokens_are_answered_as_by_apache(
    brokers: Ports, realm: Realm, protocol: str
) -> None:
    tls = create_default_context(cadata=realm.authority.pem()) if protocol == "SASL_SSL" else None
    index = PROTOCOLS.index(protocol)

    ends = _compared(list(AMONG_TOKENS), (ports[index] for ports in brokers), tls)

    unanswered = [
        frames[-1].name for frames, end in zip(AMONG_TOKENS, ends, strict=True) if end[-1] == CLOSED
    ]
    assert unanswered == ["produce with acks=0"] * 3
