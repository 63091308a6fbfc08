"""The order of an authentication, and what comes of everything out of order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.runtime.deferred import Deferred
from broker.security.sasl.mechanism import (
    Authenticated,
    Challenge,
    InvalidCredentialsError,
    RefusedError,
)
from broker.security.sasl.plain import PlainMechanism
from broker.security.sasl.reply import Session, Verdict
from broker.security.sasl.states import State
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from tests.broker.security.sasl.sasl_frames import (
    PASSWORDS,
    VERSIONS,
    Talk,
    api_versions,
    authenticate,
    authenticate_answer,
    frame_of,
    handshake,
    handshake_answer,
    plain,
    versions_answer,
)

if TYPE_CHECKING:
    from broker.security.sasl.mechanism import Step

METADATA = frame_of(MetadataRequest(topics=None), 9)
GARBAGE = b"\x60\x81\x05 what is this"


class Scripted:
    """A mechanism that takes the steps it is given."""

    name = "SCRIPTED"

    def __init__(self, *steps: Step | Exception | Deferred[Step]) -> None:
        self.steps = list(steps)
        self.tokens: list[bytes] = []

    def exchange(self) -> Scripted:
        return self

    def respond(self, token: bytes) -> Step | Deferred[Step]:
        self.tokens.append(token)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def test_a_client_with_the_right_password_is_admitted() -> None:
    talk = Talk()

    versions = talk.send(api_versions())
    chosen = talk.handshake()
    admitted = talk.authenticate(plain())

    assert versions.answer == VERSIONS
    assert handshake_answer(chosen).mechanisms == ["PLAIN"]
    assert handshake_answer(chosen).error_code == ErrorCode.NONE
    assert [reply.verdict for reply in (versions, chosen)] == [Verdict.GO_ON] * 2
    assert admitted.verdict is Verdict.ADMIT
    assert admitted.session is not None
    assert admitted.session.principal == "User:alice"
    answer = authenticate_answer(admitted)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_versions_of_sasl_authenticate_are_served(version: int) -> None:
    talk = Talk(max_reauth_ms=1000)
    talk.handshake()

    admitted = talk.authenticate(plain(), version)

    assert authenticate_answer(admitted, version).session_lifetime_ms == (1000 if version else 0)


def test_bare_tokens_follow_version_0_of_the_handshake() -> None:
    talk = Talk()
    handshake_answer(talk.handshake(version=0), 0)

    admitted = talk.send(plain())

    assert (admitted.verdict, admitted.answer) == (Verdict.ADMIT, [b"\0\0\0\0"])


def test_a_wrong_password_answers_sasl_authentication_failed() -> None:
    talk = Talk()
    talk.handshake()

    refused = talk.authenticate(plain(password="guess"))

    assert (refused.verdict, refused.session) == (Verdict.REFUSE, None)
    answer = authenticate_answer(refused)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"


def test_a_wrong_password_in_a_bare_token_is_refused_in_silence() -> None:
    talk = Talk()
    talk.handshake(version=0)

    refused = talk.send(plain(password="guess"))

    assert (refused.verdict, refused.answer) == (Verdict.REFUSE, None)


def test_an_unknown_mechanism_is_answered_with_those_there_are() -> None:
    refused = Talk().handshake("CRAM-MD5")

    assert refused.verdict is Verdict.REFUSE
    answer = handshake_answer(refused)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN"]


def test_versions_that_cannot_be_listed_may_be_asked_for_again() -> None:
    talk = Talk(are_versions_listed=False)

    replies = [talk.send(api_versions()), talk.send(api_versions()), talk.handshake()]

    assert [reply.verdict for reply in replies] == [Verdict.GO_ON] * 3


def test_versions_are_listed_once() -> None:
    talk = Talk()
    talk.send(api_versions())

    assert talk.send(api_versions()).verdict is Verdict.HANG_UP


@pytest.mark.parametrize("before", [[], [api_versions()]])
@pytest.mark.parametrize("frame", [METADATA, authenticate(plain())])
def test_no_other_request_is_answered_before_the_handshake(
    before: list[bytes], frame: bytes
) -> None:
    talk = Talk()
    for one in before:
        talk.send(one)

    reply = talk.send(frame)

    assert (reply.verdict, reply.answer, talk.conversation.state) == (
        Verdict.REFUSE,
        None,
        State.FAILED,
    )


def test_no_other_request_is_answered_while_tokens_are_exchanged() -> None:
    for frame in (METADATA, handshake(), api_versions()):
        talk = Talk()
        talk.handshake()

        reply = talk.send(frame)

        assert (reply.verdict, reply.session) == (Verdict.REFUSE, None)


def test_api_versions_and_handshakes_among_tokens_answer_illegal_sasl_state() -> None:
    first, second = Talk(), Talk()
    first.handshake()
    second.handshake()

    versions = versions_answer(first.send(api_versions()))
    chosen = handshake_answer(second.handshake())

    assert versions.error_code == chosen.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("frame", [METADATA, authenticate(plain()), GARBAGE, b""])
def test_frames_after_a_refusal_are_ignored(frame: bytes) -> None:
    talk = Talk()
    talk.handshake()
    talk.authenticate(plain(password="guess"))

    reply = talk.send(frame)

    assert (reply.verdict, reply.answer, reply.session) == (Verdict.GO_ON, None, None)


@pytest.mark.parametrize("frame", [GARBAGE, b"", b"\0", handshake()[:-3], handshake(version=0)[:9]])
def test_garbage_ends_the_connection(frame: bytes) -> None:
    for is_early in (True, False):
        talk = Talk()
        if not is_early:
            talk.send(api_versions())

        reply = talk.send(frame)

        assert reply.verdict in (Verdict.REFUSE, Verdict.HANG_UP)
        assert reply.answer is None


@pytest.mark.parametrize(
    "frame", [GARBAGE, b"", authenticate(plain())[:-30], authenticate(b"")[:9]]
)
def test_garbage_among_tokens_ends_the_connection(frame: bytes) -> None:
    talk = Talk()
    talk.handshake()

    assert talk.send(frame).verdict is Verdict.HANG_UP


def test_versions_that_there_are_not_end_the_connection() -> None:
    talk = Talk()
    late = bytearray(handshake())
    late[3] = 2
    assert talk.send(bytes(late)).verdict is Verdict.HANG_UP

    talk = Talk()
    talk.handshake()
    late = bytearray(authenticate(plain(), 1))
    late[3] = 3
    assert talk.send(bytes(late)).verdict is Verdict.HANG_UP


def test_the_first_frame_may_be_a_token_of_gssapi() -> None:
    mechanism = Scripted(Challenge(b"more"), Authenticated("User:old", None))
    mechanism.name = "GSSAPI"
    talk = Talk({"GSSAPI": mechanism})

    challenged, admitted = talk.send(GARBAGE), talk.send(b"\0")

    assert challenged.answer == [b"\0\0\0\x04more"]
    assert (admitted.verdict, admitted.answer) == (Verdict.ADMIT, None)
    assert mechanism.tokens == [GARBAGE, b"\0"]


def test_details_of_invalid_credentials_are_not_sent_to_the_client() -> None:
    for version in (0, 1):
        talk = Talk({"SCRIPTED": Scripted(InvalidCredentialsError("no such user"))})
        talk.handshake("SCRIPTED", version)

        reply = talk.send(authenticate(b"x") if version else b"x")

        assert "no such user" in reply.reason
        if version == 0:
            assert (reply.verdict, reply.answer) == (Verdict.HANG_UP, None)
        else:
            assert authenticate_answer(reply).error_message == (
                "Authentication failed during authentication due to invalid credentials "
                "with SASL mechanism SCRIPTED"
            )


def test_a_mechanism_may_answer_later() -> None:
    coming: Deferred[Step] = Deferred()
    talk = Talk({"SCRIPTED": Scripted(coming)})
    talk.handshake("SCRIPTED")

    reply = talk.conversation.receive(memoryview(authenticate(b"x")))
    assert isinstance(reply, Deferred)
    assert not reply.is_complete
    coming.complete(Authenticated("User:late"))

    assert reply.value.session is not None
    assert reply.value.session.principal == "User:late"


@pytest.mark.parametrize("error", [InvalidCredentialsError("no"), RefusedError("no")])
def test_a_mechanism_may_refuse_later(error: Exception) -> None:
    coming: Deferred[Step] = Deferred()
    talk = Talk({"SCRIPTED": Scripted(coming)})
    talk.handshake("SCRIPTED")
    reply = talk.conversation.receive(memoryview(authenticate(b"x")))
    assert isinstance(reply, Deferred)

    coming.fail(error)

    assert reply.value.verdict is Verdict.REFUSE


def test_a_defect_of_a_mechanism_that_answers_later_ends_the_connection() -> None:
    coming: Deferred[Step] = Deferred()
    talk = Talk({"SCRIPTED": Scripted(coming)})
    talk.handshake("SCRIPTED")
    reply = talk.conversation.receive(memoryview(authenticate(b"x")))
    assert isinstance(reply, Deferred)

    coming.fail(KeyError("x"))

    assert talk.conversation.state is State.FAILED
    with pytest.raises(KeyError):
        _ = reply.value


def test_a_session_ends_with_the_credential_or_the_limit() -> None:
    for limit_ms, credential_ms, expected_ms in [
        (0, None, 0),
        (-1, None, 0),
        (700, None, 700),
        (0, 500, 500),
        (700, 500, 500),
        (300, 500, 300),
        (300, -500, 0),
    ]:
        talk = Talk(max_reauth_ms=limit_ms)
        ends_ms = None if credential_ms is None else talk.clock.wall_ms + credential_ms
        mechanism = Scripted(Authenticated("User:x", expires_at_ms=ends_ms))
        talk = Talk({"SCRIPTED": mechanism}, max_reauth_ms=limit_ms)
        talk.handshake("SCRIPTED")

        admitted = talk.authenticate(b"x")

        assert admitted.session is not None
        has_end = limit_ms > 0 or credential_ms is not None
        end_ms = talk.clock.passed_ms + expected_ms if has_end else None
        assert admitted.session.expires_at_ms == end_ms
        assert authenticate_answer(admitted).session_lifetime_ms == expected_ms


def _session(principal: str = "User:alice") -> Session:
    return Session(principal, PlainMechanism(PASSWORDS), 9_000)


def test_a_client_authenticates_again() -> None:
    talk = Talk(before=_session(), max_reauth_ms=1000)

    chosen, admitted = talk.handshake(), talk.authenticate(plain())

    assert handshake_answer(chosen).error_code == ErrorCode.NONE
    assert admitted.session is not None
    assert admitted.session.expires_at_ms == talk.clock.passed_ms + 1000


def test_reauthentication_cannot_change_the_principal() -> None:
    talk = Talk(before=_session())
    talk.handshake()

    refused = talk.authenticate(plain("bob", "bob-secret"))

    assert (refused.verdict, refused.session) == (Verdict.REFUSE, None)
    assert authenticate_answer(refused).error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )


def test_a_client_may_not_change_its_mechanism() -> None:
    talk = Talk({"PLAIN": PlainMechanism(PASSWORDS), "SCRIPTED": Scripted()}, before=_session())

    chosen, refused = talk.handshake("SCRIPTED"), talk.authenticate(plain())

    assert handshake_answer(chosen).error_code == ErrorCode.NONE
    assert (refused.verdict, refused.answer) == (Verdict.REFUSE, None)


def test_refused_reauthentication_is_named_in_its_error_message() -> None:
    mechanism = Scripted(InvalidCredentialsError("revoked"))
    talk = Talk({"SCRIPTED": mechanism}, before=Session("User:x", mechanism))
    talk.handshake("SCRIPTED")

    message = authenticate_answer(talk.authenticate(b"x")).error_message

    assert message is not None
    assert "during re-authentication" in message
