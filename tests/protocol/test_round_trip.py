"""What is encoded is decoded to the same values, for any values of any message and version."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocol.strategies import every_version, instances


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_any_values_come_back(pair: tuple[type, int], data: st.DataObject) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    frame = memoryview(bytearray(sent.encode(version)))
    assert type(sent).decode(version, frame) == sent
    assert type(sent).decode_from(version, frame, 0) == (sent, len(frame))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_parts_are_the_bytes(pair: tuple[type, int], data: st.DataObject) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    assert b"".join(sent.encode_parts(version)) == sent.encode(version)
