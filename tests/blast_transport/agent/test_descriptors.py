"""Limits of connections follow the number of files that the process may open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.descriptors import RESERVED, DescriptorLimitError, descriptors
from blast_transport.agent.process import within_descriptors
from blast_transport.agent.settings import AgentSection, Settings
from blast_transport.base.errors import SettingsError

BOUNDS = st.lists(st.integers(1, 5000), min_size=1, max_size=8)


@given(BOUNDS, st.integers(64, 10_000), st.integers(0, 100))
def test_shares_fit_into_remaining_descriptors(bounds: list[int], left: int, own: int) -> None:
    room = descriptors(RESERVED + own + left, own, sum(bounds), minimum=64)
    shares = [room.share(bound) for bound in bounds]
    assert sum(shares) <= max(left, sum(bounds) if sum(bounds) <= left else left + 4 * len(bounds))
    assert shares == bounds or sum(bounds) > left
    assert all(share >= min(4, bound) for share, bound in zip(shares, bounds, strict=True))


def test_too_low_descriptor_limit_names_required_number() -> None:
    with pytest.raises(
        DescriptorLimitError, match=f"may open 100 files and needs {RESERVED + 10 + 64}: raise its limit"
    ):
        descriptors(100, 10, 1000, minimum=64)


def test_agent_limits_connections_to_available_descriptors() -> None:
    settings = Settings(agent=AgentSection())
    assert within_descriptors(settings, 10_000) is settings
    few = within_descriptors(settings, 256).limits
    assert few.sessions == settings.limits.sessions
    assert (few.connections, few.unauthenticated, few.unauthenticated_per_host) == (80, 20, 10)
    many_sessions = replace(settings, limits=replace(settings.limits, sessions=4096))
    assert within_descriptors(many_sessions, 256).limits.connections == 80
    with pytest.raises(SettingsError, match="may open 100 files"):
        within_descriptors(settings, 100)
