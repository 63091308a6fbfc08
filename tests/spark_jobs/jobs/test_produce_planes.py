"""Planes in a topic: each as the package has it, once however often they are produced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from spark_jobs.jobs.produce_planes import PlanesOptions, produce
from tests.spark_jobs.data.planes import all_planes
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_topic_holds_the_packages_table_and_running_again_adds_nothing(
    servers: str, new_name: Callable[[str], str]
) -> None:
    topic = new_name("planes")
    options = PlanesOptions(bootstrap_servers=servers, topic=topic)
    planes = all_planes()
    assert produce(options) == (len(planes), len(planes))
    records = {
        (r.key or b"").decode(): json.loads(r.value or b"") for r in read_topic(servers, topic)
    }
    found = pd.DataFrame(records.values()).set_index("tailnum").sort_index()
    wanted = planes.set_index("tailnum").sort_index()
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    assert all(key == plane["tailnum"] for key, plane in records.items())

    assert produce(options) == (len(planes), 0)
    assert len(read_topic(servers, topic)) == len(planes)
