"""Faults that a test can inject into a broker's requests, wherever the broker runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from broker.embedded.faults.fault import Fault, Mischief
from broker.embedded.names import error_named, request_named
from broker.embedded.set_fault import SetFault

if TYPE_CHECKING:
    from broker.embedded.engines.engine import Engine
    from protocol.errors import ErrorCode
    from protocol.schema import Request

    Kind = type[Request] | str | None


class FaultyRequests(ABC):
    """Each of these strikes at once, and as a context until its end. `request` None is any.

    Requests and errors may be given by name, in any case. `times` bounds how many requests are
    struck, `topic` and `client_id` which.
    """

    @property
    @abstractmethod
    def _engine(self) -> Engine:
        """Engine of the broker."""

    def fail(
        self,
        request: Kind,
        error: ErrorCode | str,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Answer with an error, and do not handle it.

        With `topic`, other topics of the same request are served. Where the answer has no field
        for an error, the connection is closed.
        """
        kind, code = request_named(request), error_named(error)
        fault = Fault(Mischief.FAIL, kind, code, 0.0, times, topic, client_id)
        return SetFault(self._engine, fault)

    def delay(
        self,
        request: Kind,
        seconds: float,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Handle it later, by the broker's clock; its connection waits meanwhile."""
        return self._set(Mischief.DELAY, request, (times, topic, client_id), seconds)

    def disconnect(
        self,
        request: Kind,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Close its connection, and do not handle it."""
        return self._set(Mischief.DISCONNECT, request, (times, topic, client_id))

    def drop_answer(
        self,
        request: Kind,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        disconnects: bool = True,
    ) -> SetFault:
        """Handle it and never answer: a client that sends again has it done twice.

        The connection is closed in the place of an answer; without `disconnects` it stays open, and
        the client has to notice by its own time-out.
        """
        mischief = Mischief.DROP_ANSWER if disconnects else Mischief.WITHHOLD_ANSWER
        return self._set(mischief, request, (times, topic, client_id))

    def _set(
        self,
        mischief: Mischief,
        request: Kind,
        which: tuple[int | None, str | None, str | None],
        seconds: float = 0.0,
    ) -> SetFault:
        times, topic, client_id = which
        fault = Fault(
            mischief,
            request_named(request),
            seconds=seconds,
            times=times,
            topic=topic,
            client_id=client_id,
        )
        return SetFault(self._engine, fault)
