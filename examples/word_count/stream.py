"""Counts words: lines in, a record with the new count of each word out.

Counts are kept in a store on disk, and in a topic from which a store is made anew; counts and
offsets are committed in one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quixstreams import Application

if TYPE_CHECKING:
    from pathlib import Path

    from quixstreams import State


def application(bootstrap_servers: str, lines: str, counts: str, directory: Path) -> Application:
    """The stream; `run` runs it."""
    app = Application(
        broker_address=bootstrap_servers,
        consumer_group=counts,
        auto_offset_reset="earliest",
        state_dir=directory,
        processing_guarantee="exactly-once",
        commit_interval=0.2,
        use_changelog_topics=True,
        loglevel="WARNING",
    )
    stream = app.dataframe(app.topic(lines, value_deserializer="string"))
    stream = stream.apply(str.split, expand=True).group_by(lambda word: word, name="word")
    stream = stream.apply(_counted, stateful=True)
    stream.to_topic(app.topic(counts, value_serializer="int"))
    return app


def _counted(word: str, state: State) -> int:
    count = state.get(word, 0) + 1
    state.set(word, count)
    return count
