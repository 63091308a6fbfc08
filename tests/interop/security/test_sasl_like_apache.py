"""An authentication in any order is answered as by Apache Kafka 4: drawn dialogues with both.

Long runs: `SASL_DIALOGUES=20000 SASL_SEED=7`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.interop.security.sasl_dialogues import BY_NAME, CLOSED, METADATA, drawn, held
from tests.support.security.secured_brokers import APACHE_4, OURS, secured_broker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.security.sasl_dialogues import Frame
    from tests.support.security.realm import Realm

pytestmark = [pytest.mark.interop, pytest.mark.java]

COUNT = int(os.environ.get("SASL_DIALOGUES", "1000"))
SEED = int(os.environ.get("SASL_SEED", "1"))
AT_ONCE = 8
LIFETIME = "3600000"
KEYS = {
    "connection.failed.authentication.delay.ms": "0",
    "connections.max.reauth.ms": LIFETIME,
}


def _is_known(frames: tuple[Frame, ...], ours: list[str], theirs: list[str]) -> bool:
    """Another request among tokens is told ILLEGAL_SASL_STATE there, and not here (GAPS.md)."""
    end = len(ours) - 1
    is_same = ours[:end] == theirs[:end]
    return is_same and frames[end] is METADATA and (ours[end], theirs[end]) == (CLOSED, "metadata")


@pytest.mark.timeout(1200)
def test_every_dialogue_goes_as_with_apache(realm: Realm, tmp_path: Path) -> None:
    ours = secured_broker(OURS, tmp_path / "ours", realm, KEYS)
    theirs = secured_broker(APACHE_4, tmp_path / "theirs", realm, KEYS)
    dialogues = [(frame,) for frame in BY_NAME.values()] + drawn(SEED, COUNT)
    try:
        ours.start()
        theirs.start()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ends = [
                list(pool.map(partial(held, port), dialogues))
                for port in (ours.ports.sasl_plaintext, theirs.ports.sasl_plaintext)
            ]
    finally:
        ours.process.kill()
        theirs.process.kill()

    different = [
        f"{[frame.name for frame in frames]}\n  ours:   {mine}\n  theirs: {their}"
        for frames, mine, their in zip(dialogues, *ends, strict=True)
        if mine != their and not _is_known(frames, mine, their)
    ]
    if different:
        pytest.fail("\n".join(different), pytrace=False)
    admitted = sum(any(LIFETIME in told for told in end) for end in ends[0])
    assert admitted > COUNT // 10
