"""Two brokers are asked the same; what their answers say has to be the same."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from protocol.acl_types import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.schema import Struct
from tests.interop.security.drawn_steps import (
    CHANGES_ACLS,
    GROUPS,
    KEPT,
    MAY_CREATE,
    NEVER,
    REMOVES_GROUPS,
    TRANSACTIONS,
    Step,
    draw_acls,
    draw_step,
)
from tests.support.sent_requests.about import About
from tests.support.sent_requests.makers import ALL
from tests.support.sent_requests.outcomes import outcome
from tests.support.sent_requests.security_requests import NOBODY
from tests.support.wire import ConnectionClosedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tests.interop.security.contestants import Contestant, Entry

STEPS_PER_ACLS = 20
HUNG_UP = "hung up"
NO_ANSWER = "no answer"
CREATION_SECONDS = 0.2
"""Time within which a topic that a look-up creates is there, or soon will be."""
FIRST = {ApiKey.OFFSET_COMMIT: 1, ApiKey.OFFSET_FETCH: 1}
"""Version 0 keeps positions in ZooKeeper, and not with the group."""
AGREED_SECONDS = 10.0
LATE_SECONDS = 1.0
POLL_SECONDS = 0.02
REFUSALS = {
    *(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    *(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def refused(shown: Any) -> bool:
    """Return whether any error in an outcome is an authorisation error."""
    if isinstance(shown, dict):
        return any(
            value in REFUSALS if key.endswith("error_code") else refused(value)
            for key, value in shown.items()
        )
    return isinstance(shown, list) and any(map(refused, shown))


def of_nobody(topic: str) -> Entry:
    """The entry that `create_acls` asks for."""
    kind, pattern = int(ResourceType.TOPIC), int(PatternType.LITERAL)
    operation, permission = int(AclOperation.READ), int(PermissionType.ALLOW)
    return (kind, topic, pattern, NOBODY, WILDCARD, operation, permission)


class Difference(NamedTuple):
    """A request that was answered differently."""

    step: Step
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.step}\n  ours:   {self.ours}\n  theirs: {self.theirs}"


@dataclass(slots=True)
class Score:
    """Outcome of a duel."""

    asked: int = 0
    refused: int = 0
    """Count of answers with an error."""
    differences: list[Difference] = field(default_factory=list)
    late: list[Difference] = field(default_factory=list)
    """Differences that vanished a moment later: Apache Kafka's broker and its controller learn of a
    change at different times. A difference in access remains one."""


class Duel:
    """A drawn sequence against both brokers."""

    def __init__(self, ours: Contestant, theirs: Contestant, seed: int) -> None:
        self._both = (ours, theirs)
        self._chance = random.Random(seed)
        self._ids: tuple[dict[str, UUID], ...] = ({}, {})
        self._entries: set[Entry] = set()

    def fight(self, steps: int, is_known: Callable[[Difference], bool]) -> Score:
        """Take that many steps; `is_known` says which differences GAPS.md explains."""
        score = Score()
        for one in self._both:
            one.find_coordinators(GROUPS, TRANSACTIONS)
        served = self._served()
        for number in range(steps):
            if number % STEPS_PER_ACLS == 0:
                self._draw_acls()
            step = draw_step(self._chance, served)
            told = self._ask_both(step)
            score.asked += 1
            score.refused += refused(told.theirs)
            if told.ours != told.theirs and not is_known(told):
                time.sleep(LATE_SECONDS)
                again = self._ask_both(step)
                is_late = again.ours == again.theirs or is_known(again)
                (score.late if is_late else score.differences).append(told)
            if step.key in MAY_CREATE and not self._agree_on_topics(step):
                score.differences.append(Difference(step, *(sorted(i) for i in self._ids)))
            elif step.key in CHANGES_ACLS:
                self._agree_on_acls(step, told.theirs)
            elif step.key in REMOVES_GROUPS:
                self._have_groups()
        return score

    def _ask_both(self, step: Step) -> Difference:
        ours, theirs = (self._ask(index, step) for index in (0, 1))
        return Difference(step, ours, theirs)

    def _served(self) -> dict[ApiKey, range]:
        """The versions that both serve, of each API."""
        ours, theirs = (one.admin.versions() for one in self._both)
        return {
            key: range(
                max(ours[key].start, theirs[key].start, FIRST.get(key, 0)),
                min(ours[key].stop, theirs[key].stop),
            )
            for key in ALL
            if key in ours and key in theirs
        }

    def _draw_acls(self) -> None:
        self._entries = draw_acls(self._chance)
        self._settle(set(KEPT))
        self._have_groups()
        for one in self._both:
            one.set_acls(self._entries)

    def _have_groups(self) -> None:
        """Create all groups; tests of their creation are elsewhere."""
        for one in self._both:
            one.commit(KEPT[0], GROUPS)

    def _agree_on_acls(self, step: Step, answer: Any) -> None:
        """Wait until both show what a user has changed."""
        if not refused(answer):
            made = {of_nobody(topic) for topic in step.topics}
            if step.key is ApiKey.CREATE_ACLS:
                self._entries |= made
            else:
                self._entries.discard(of_nobody(step.topics[0]))
        for one in self._both:
            one.set_acls(self._entries)

    def _agree_on_topics(self, step: Step) -> bool:
        """Wait until both have the same topics. False if they never have."""
        if NEVER in step.topics:
            time.sleep(CREATION_SECONDS)
        deadline = time.monotonic() + AGREED_SECONDS
        while not (is_agreed := self._have_equal_topics()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not is_agreed:
            self._settle(set(KEPT))
        return is_agreed

    def _have_equal_topics(self) -> bool:
        self._ids = tuple(one.topics() for one in self._both)
        ours, theirs = self._ids
        return set(ours) == set(theirs)

    def _settle(self, topics: set[str]) -> None:
        for one in self._both:
            one.settle_topics(topics)
        self._ids = tuple(one.topics() for one in self._both)

    def _ask(self, index: int, step: Step) -> Any:
        ids = self._ids[index]
        about = About(step.topics, step.group, step.transactional_id, step.form, ids)
        user = self._both[index].users[step.user]
        try:
            answer = user.ask(ALL[step.key](about, step.version), step.version)
        except ConnectionClosedError:
            return HUNG_UP
        except TimeoutError:
            return NO_ANSWER
        assert isinstance(answer, Struct)
        return outcome(answer, {topic_id: name for name, topic_id in ids.items()})
