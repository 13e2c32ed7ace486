"""Tests that share what takes long to make are marked as a group, and a group runs in one process."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process alone")
@pytest.mark.xdist_group("one process")
def test_a_group_runs_in_one_process(request: pytest.FixtureRequest) -> None:
    """Where marks no longer reach who deals tests out, all still passes, in half as much time again."""
    assert request.node.nodeid.endswith("@one process")
