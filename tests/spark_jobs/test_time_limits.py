"""How long tests of this directory may take: as their module says, if it says so."""

from __future__ import annotations

import pytest

MODULE_SECONDS = 241
pytestmark = pytest.mark.timeout(MODULE_SECONDS)


def _seconds(request: pytest.FixtureRequest) -> object:
    marker = request.node.get_closest_marker("timeout")
    assert marker is not None
    return marker.args[0]


def test_the_limit_of_a_module_counts(request: pytest.FixtureRequest) -> None:
    assert _seconds(request) == MODULE_SECONDS


@pytest.mark.timeout(242)
def test_the_limit_of_a_test_counts_before_its_modules(request: pytest.FixtureRequest) -> None:
    assert _seconds(request) == 242
