"""Drawn frames before the gate: none causes an error, and no client passes without a password."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest
from tests.broker.network.authentication.doorstep import PASSED, Doorstep
from tests.broker.security.sasl.sasl_frames import (
    api_versions,
    authenticate,
    frame_of,
    handshake,
    plain,
)

RIGHT = (plain(), plain("bob", "bob-secret"), plain(wanted="alice"))
WRONG = (
    plain(password="guess"),
    plain("mallory", "alice-secret"),
    plain(wanted="bob"),
    b"",
    b"\0\0",
    b"n,,n=carol,r=nonce",
    b"n,,n=mallory,r=nonce,tokenauth=true",
    b"c=biws,r=nonce,p=AAAA",
)
NAMES = st.sampled_from(["PLAIN", "SCRAM-SHA-256", "GSSAPI", "plain", ""])
TOKENS = st.one_of(st.sampled_from(RIGHT), st.sampled_from(WRONG), st.binary(max_size=40))
FRAMES = st.one_of(
    st.sampled_from([0, 3, 4]).map(api_versions),
    st.builds(handshake, NAMES, st.sampled_from([0, 1])),
    st.builds(authenticate, TOKENS, st.sampled_from([0, 1, 2])),
    st.builds(authenticate, st.sampled_from(RIGHT)),
    st.just(frame_of(MetadataRequest(topics=None), 9)),
    TOKENS,
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A frame that is cut short, has a byte changed, or has bytes too many."""
    frame = bytearray(draw(FRAMES))
    if frame:
        at = draw(st.integers(0, len(frame) - 1))
        how = draw(st.integers(0, 2))
        if how == 0:
            del frame[at:]
        elif how == 1:
            frame[at] = draw(st.integers(0, 255))
        else:
            frame += draw(st.binary(max_size=20))
    return bytes(frame)


SENT = st.lists(st.one_of(FRAMES, damaged()), max_size=12)


def holds_a_right_password(frame: bytes) -> bool:
    return any(token in frame for token in RIGHT)


@settings(max_examples=2000, deadline=None)
@given(SENT, st.sampled_from([0, 60_000]))
def test_only_a_right_password_opens_the_gate(frames: list[bytes], max_reauth_ms: int) -> None:
    door = Doorstep(max_reauth_ms)
    for frame in frames:
        was_admitted, was_closed, count = door.is_admitted, door.is_closed, len(door.passed)
        door.send(frame)
        has_passed = len(door.passed) > count
        if not was_admitted:
            if door.is_admitted:
                assert holds_a_right_password(frame)
                assert door.peer.principal in ("User:alice", "User:bob")
            if has_passed:
                assert frame[:2] == int(ApiKey.API_VERSIONS).to_bytes(2, "big")
        if was_closed:
            assert not has_passed
    principal = door.peer.principal
    door.timers.run_out()
    assert (principal != "User:ANONYMOUS") == door.is_admitted


@settings(max_examples=1000, deadline=None)
@given(SENT)
def test_a_clients_principal_never_changes(frames: list[bytes]) -> None:
    door = Doorstep(60_000)
    door.send(handshake())
    door.send(authenticate(plain()))
    for frame in frames:
        door.send(frame)

    assert door.peer.principal == "User:alice"
    assert all(answer is None or answer == PASSED or answer[0] for answer in door.answers)
